// SPDX-License-Identifier: BSD-3-Clause
// Whether others want the CPU that a thread has for itself.
#pragma once

#include <cstdint>

namespace vecmpi::base {

// For a thread that looks and yields: do others want its CPU as well? It looks how often and how
// long the thread was off the CPU, over 50 ms. In that time the kernel moves a thread that has
// another CPU to go to.
class CrowdedCpu {
  public:
    explicit CrowdedCpu(uint64_t patience_us) noexcept
        : first_patience_us_(patience_us), patience_us_(patience_us) {}
    // Call after each look in vain, and yield after some of them. Asks the system every 5 ms.
    bool noticed() noexcept {
        constexpr uint32_t looks_between_clocks = 16;
        return ++looks_ % looks_between_clocks == 0 && check();
    }
    // Call after a sleep: the time until now does not count.
    void slept() noexcept { began_us_ = 0; }
    // After noticed(): is it time to try again? What starts on a node is mostly there for a moment.
    // True after patience_us, then after twice as long each time, up to a minute. A try that holds
    // for longer than a minute begins anew.
    bool may_be_over() noexcept;

  private:
    bool check() noexcept;

    uint32_t looks_ = 0;
    uint64_t began_us_ = 0;  // 0: with the next check
    uint64_t switches_then_ = 0;
    uint64_t ran_us_then_ = 0;
    uint32_t crowded_spans_ = 0;  // less those that were not
    uint64_t noticed_us_ = 0, tried_us_ = 0;
    uint64_t first_patience_us_, patience_us_;
};
// Pure; over some milliseconds. A competitor that computes takes time slices of 3 or 4 ms, half of
// the time. One that yields as well is let in hundreds of times a millisecond. Other work on an
// idle CPU is neither so long nor so frequent, and a thread that waits for a lock is not pushed
// off. switches: involuntary ones and yields; ran_us: CPU time of the thread.
bool is_crowded(uint64_t switches, uint64_t ran_us, uint64_t elapsed_us) noexcept;

}  // namespace vecmpi::base
