// SPDX-License-Identifier: BSD-3-Clause
// The lock of the fake MPI library. For fake_*.cpp only: it hides what it guards from the thread
// sanitizer.
#pragma once

#include <mutex>

#if defined(__SANITIZE_THREAD__)
extern "C" {
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace fake {

// The lock of the fake library. The thread sanitizer must not take it for an order between the
// threads of the program under test, or it would miss what that program forgot: under the sanitizer
// the lock and what it guards are hidden.
class Locked {
  public:
    Locked() {
#if defined(__SANITIZE_THREAD__)
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
        mutex.lock();
    }
    ~Locked() {
        mutex.unlock();
#if defined(__SANITIZE_THREAD__)
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
#endif
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    static inline std::mutex mutex;
};

}  // namespace fake
