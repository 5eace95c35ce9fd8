// SPDX-License-Identifier: BSD-3-Clause
// Time between two polls of an offload thread that shares its CPU, or has found nothing for long.
// Pure: values in, a time out.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vecmpi::offload {

// Each poll costs the program a context switch. So the interval is as long as one poll can keep up
// with the link: by TCP a poll moves at most about 16 pieces of 8 KiB. (Two hosts at 1 Gbit/s
// whose CPUs all compute hide 80 % of 4 MiB with 400 us, 68 % with 50 us, and 60 % with polls until
// nothing moves.)
class PollInterval {
  public:
    // A command came or an operation ended: its partner may answer at once.
    void restart() noexcept {
        length_us_ = shortest_us;
        in_vain_ = 0;
    }
    // events: what the library moved since the last interval.
    uint64_t next_us(uint64_t events) noexcept {
        in_vain_ = events == 0 ? in_vain_ + 1 : 0;
        if (in_vain_ > patience) return idle_us;
        length_us_ = events > many_events ? length_us_ / 2 : length_us_ * 2;
        length_us_ = std::clamp(length_us_, shortest_us, longest_us);
        return length_us_;
    }

  private:
    static constexpr uint64_t shortest_us = 50, longest_us = 400, idle_us = 1000, many_events = 10;
    static constexpr uint32_t patience = 250;  // polls that found nothing: a tenth of a second
    uint64_t length_us_ = shortest_us;
    uint32_t in_vain_ = 0;
};

}  // namespace vecmpi::offload
