// SPDX-License-Identifier: BSD-3-Clause
// The cheapest steady counter of this CPU, and its speed. Inside src/base and its tests only.
#pragma once

#include <cstdint>

#include "base/api/waiting.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace vecmpi::base {

// Set by choose_ticks(), before any time is taken.
extern bool ticks_are_of_cpu;
// The CPU's counter, where its speed does not follow the core's clock. Else nanoseconds.
void choose_ticks() noexcept;

inline uint64_t ticks() noexcept {
#if defined(__x86_64__)
    if (ticks_are_of_cpu) return __rdtsc();
#elif defined(__aarch64__)
    if (ticks_are_of_cpu) {
        uint64_t count;
        asm volatile("mrs %0, cntvct_el0" : "=r"(count));
        return count;
    }
#endif
    return monotonic_ns();
}

// Both clocks at one moment.
struct ClockReading {
    uint64_t ticks = 0, ns = 0;
};

// A thread that loses its CPU between the two readings would put them far apart. So the closest of
// eight tries counts.
template <class Ticks, class Nanoseconds>
ClockReading read_closely(Ticks now_ticks, Nanoseconds now_ns) noexcept {
    ClockReading best;
    uint64_t least = UINT64_MAX;
    for (int look = 0; look < 8; ++look) {
        const uint64_t before = now_ticks(), ns = now_ns(), after = now_ticks();
        if (after < before || after - before >= least) continue;
        least = after - before;
        best = {before + least / 2, ns};
    }
    return best;
}
inline ClockReading read_clocks() noexcept { return read_closely(ticks, monotonic_ns); }

// Pure. The speed is taken between the two readings; 0 where no time is between them.
inline uint64_t ticks_to_ns(uint64_t span, const ClockReading& from,
                            const ClockReading& to) noexcept {
    if (to.ticks <= from.ticks || to.ns <= from.ns) return 0;
    const double ns_in_tick =
        static_cast<double>(to.ns - from.ns) / static_cast<double>(to.ticks - from.ticks);
    return static_cast<uint64_t>(static_cast<double>(span) * ns_in_tick);
}

}  // namespace vecmpi::base
