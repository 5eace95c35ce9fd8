// SPDX-License-Identifier: BSD-3-Clause
// Scattered blocks as samples of one class of lengths and distances: their means lie in that class
// exactly, since by these the library looks a profile's entry up. Measures nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "base/api/profile.hpp"
#include "kernels/api.hpp"

namespace vecmpi::tune {

constexpr int64_t most_span = int64_t{16} << 20;

// Of blocks of the class's longest length. The mean of dense and of far stands at the edge, or
// near it.
inline int64_t distance_of(Distance distance, int64_t bytes) {
    const int64_t distances[] = {2 * bytes, 3 * bytes, 8 * bytes, 4096 + 64 + bytes};
    return distances[static_cast<size_t>(distance)];
}

// Numbers drawn at random from `least` on whose mean is `mean`, not only about it: in pairs that
// lie as far below as above, then shuffled.
inline std::vector<int64_t> drawn(size_t number, int64_t least, int64_t mean,
                                  std::minstd_rand& random) {
    std::vector<int64_t> numbers;
    while (numbers.size() + 1 < number) {
        const int64_t one = least + static_cast<int64_t>(random()) % (2 * (mean - least) + 1);
        numbers.push_back(one);
        numbers.push_back(2 * mean - one);
    }
    if (numbers.size() < number) numbers.push_back(mean);
    std::shuffle(numbers.begin(), numbers.end(), random);
    return numbers;
}

// Of blocks of up to so many bytes, their mean distance, in rising order or in none.
inline std::vector<int64_t> offsets_of(int64_t bytes, int64_t distance, size_t stream,
                                       bool rising) {
    std::minstd_rand random(7);
    const auto most = static_cast<size_t>(most_span / distance);
    const size_t number = std::min(std::max<size_t>(stream / static_cast<size_t>(bytes), 2), most);
    std::vector<int64_t> offsets{0};
    for (const int64_t gap : drawn(number - 1, bytes, distance, random))
        offsets.push_back(offsets.back() + gap);
    if (!rising) std::shuffle(offsets.begin(), offsets.end(), random);
    return offsets;
}

// Of half to one and a half of `bytes` each, which is even.
inline std::vector<kernels::Block> blocks_of(int64_t bytes, int64_t distance, size_t stream) {
    const std::vector<int64_t> offsets = offsets_of(3 * bytes / 2, distance, stream, true);
    std::minstd_rand random(11);  // other numbers than the gaps
    const std::vector<int64_t> lengths = drawn(offsets.size(), bytes / 2, bytes, random);
    std::vector<kernels::Block> blocks;
    for (size_t i = 0; i < offsets.size(); ++i) blocks.push_back({offsets[i], lengths[i]});
    return blocks;
}

}  // namespace vecmpi::tune
