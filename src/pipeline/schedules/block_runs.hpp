// SPDX-License-Identifier: BSD-3-Clause
// Positions in a team modulo its size, and blocks that lie one behind the other. For the phases.
#pragma once

#include "schedule.hpp"

namespace vecmpi::pipeline {

inline const Segment& at(const Blocks& blocks, int i) noexcept {
    return blocks[static_cast<size_t>(i)];
}

inline int modulo(int value, int p) noexcept { return ((value % p) + p) % p; }

// Blocks first, first+1, ... (modulo p) as runs of elements that lie one behind the other.
// visit(elements, number of blocks before the run, number of blocks in it)
template <class Visit>
void each_run(const Blocks& blocks, int first, int number, Visit visit) {
    const int p = static_cast<int>(blocks.size());
    for (int i = 0; i < number;) {
        Segment run = at(blocks, (first + i) % p);
        int held = 1;
        for (; i + held < number; ++held) {
            const Segment& block = at(blocks, (first + i + held) % p);
            if (run.first + run.count != block.first) break;
            run.count += block.count;
        }
        visit(run, i, held);
        i += held;
    }
}

}  // namespace vecmpi::pipeline
