// SPDX-License-Identifier: BSD-3-Clause
// What the thread sanitizer must not report in these tests. Holds no test.

#if defined(__SANITIZE_THREAD__)
// Boost.Lockfree reads nodes that another thread may have taken meanwhile, and throws the value
// away when its compare-and-swap then fails. Nothing of ours is called from inside it, so nothing
// of ours is hidden.
extern "C" const char* __tsan_default_suppressions() { return "race:boost::lockfree\n"; }
#endif
