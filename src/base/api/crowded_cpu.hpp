// SPDX-License-Identifier: BSD-3-Clause
// Whether others want the CPU that a thread has for itself.
#pragma once

#include <cstdint>

namespace vecmpi::base {

// A thread that looks and yields on a CPU which others want as well: tells so from how often, and
// for how long, it was off, when that goes on for 50 ms. The kernel needs less to move a thread
// that has another CPU to go to.
class CrowdedCpu {
  public:
    explicit CrowdedCpu(uint64_t patience_us) noexcept
        : first_patience_us_(patience_us), patience_us_(patience_us) {}
    // Call after each look in vain, and yield after some: asks the system every 5 ms.
    bool noticed() noexcept {
        constexpr uint32_t looks_between_clocks = 16;
        return ++looks_ % looks_between_clocks == 0 && check();
    }
    // Call after a sleep: the time until now does not count.
    void slept() noexcept { began_us_ = 0; }
    // After noticed(): it is time to try again, since what starts on a node is there for a moment.
    // After patience_us, then after twice as long each time, up to a minute, until a try holds for
    // longer than that.
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
// Pure, of some milliseconds. A competitor that computes takes time slices of 3 or 4 ms in turn,
// and half of the time; one that yields as well is let in hundreds of times a millisecond. What
// else runs on an idle CPU now and then is neither so long nor so frequent; a thread that waits for
// a lock is not pushed off. switches: involuntary ones and yields; ran_us: CPU time of the thread.
bool is_crowded(uint64_t switches, uint64_t ran_us, uint64_t elapsed_us) noexcept;

}  // namespace vecmpi::base
