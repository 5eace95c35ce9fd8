// SPDX-License-Identifier: BSD-3-Clause
// Parts of a vector.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vecmpi::base {

// Elements [first, first + count) of the vector.
struct Segment {
    int64_t first = 0;
    int64_t count = 0;
};

// The i-th of n nearly equal parts of `elements`: sizes differ by at most one, larger ones first.
constexpr Segment segment(int64_t elements, unsigned n, unsigned i) noexcept {
    const int64_t base = elements / n, extra = elements % n;
    const int64_t index = i;
    return {index * base + std::min(index, extra), base + (index < extra ? 1 : 0)};
}

}  // namespace vecmpi::base
