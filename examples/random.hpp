// SPDX-License-Identifier: BSD-3-Clause
// Pseudo-random numbers that are the same on every rank and machine. Not for secrets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace example {

// splitmix64 (Steele, Lea, Flood 2014): one addition and a mixing function per number.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    // In [-limit, limit), with 24 bits, so that every value is an exact float.
    float uniform(float limit) {
        return limit * (static_cast<float>(next() >> 40) / float{1 << 23} - 1.0F);
    }

    // Fisher and Yates; the bias of the remainder is far below what a demo can notice.
    void shuffle(std::vector<std::size_t>& items) {
        for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[next() % i]);
    }

  private:
    std::uint64_t state_;
};

}  // namespace example
