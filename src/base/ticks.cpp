// SPDX-License-Identifier: BSD-3-Clause
// Which counter gives the time.
#include "ticks.hpp"

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace vecmpi::base {

constinit bool ticks_are_of_cpu = false;

namespace {

bool cpu_counts_steadily() noexcept {
#if defined(__x86_64__)
    // Invariant TSC (AMD64 manual volume 2, 13.2.4; Intel SDM volume 3, 18.17.1). A hypervisor that
    // moves machines between hosts hides the bit.
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#elif defined(__aarch64__)
    return true;  // the system counter
#else
    return false;
#endif
}

}  // namespace

uint64_t monotonic_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void choose_ticks() noexcept { ticks_are_of_cpu = cpu_counts_steadily(); }

}  // namespace vecmpi::base
