// SPDX-License-Identifier: BSD-3-Clause
// Who exchanges with whom in a butterfly of any number of participants. Pure.
#pragma once

#include <bit>

namespace vecmpi::pipeline::node {

// Groups as in MPICH's recursive doubling, so that sums have its bits: of the first participants,
// two by two, the even one is the extra and the odd one its master. The masters, with or without an
// extra, are a power of two.
struct ButterflyPlan {
    int participants;
    int me;
    constexpr int core() const noexcept {  // the number of masters
        return static_cast<int>(std::bit_floor(static_cast<unsigned>(participants)));
    }
    constexpr int extras() const noexcept { return participants - core(); }
    constexpr int steps() const noexcept {
        return static_cast<int>(std::bit_width(static_cast<unsigned>(core()))) - 1;
    }
    constexpr bool is_in_pair() const noexcept { return me < 2 * extras(); }
    constexpr bool is_extra() const noexcept { return is_in_pair() && me % 2 == 0; }
    constexpr bool has_extra() const noexcept { return is_in_pair() && me % 2 == 1; }
    // The master of an extra, the extra of a master, or -1.
    constexpr int other_of_group() const noexcept { return is_in_pair() ? me ^ 1 : -1; }
    // Masters are numbered from 0.
    constexpr int number() const noexcept { return is_in_pair() ? me / 2 : me - extras(); }
    constexpr int participant(int master) const noexcept {
        return master < extras() ? 2 * master + 1 : master + extras();
    }
    constexpr int partner(int step) const noexcept {  // of a master
        return participant(number() ^ (1 << step));
    }
    // Lines that one participant needs for an operation: its extra's value or one for each step,
    // and the release.
    constexpr int lines() const noexcept { return steps() + 1; }
    constexpr int release_line() const noexcept { return steps(); }
};

}  // namespace vecmpi::pipeline::node
