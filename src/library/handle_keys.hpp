// SPDX-License-Identifier: BSD-3-Clause
// A number of 32 bits for each handle that is an address, so that caches can keep it and what they
// know of it in one word. Inside src/library and its tests.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vecmpi::library {

// An address keeps its number for ever; libraries use the memory of freed objects again. A hash
// table, probed in line (Knuth, The Art of Computer Programming 3, 6.4, algorithm L), in which
// nothing is ever removed. Any thread, without a lock.
class HandleKeys {
  public:
    static constexpr size_t most = size_t{1} << 14;

    // Counted from first_key, below which the predefined handles lie. Up to here no program has
    // memory. 0 where the places for this address are taken: then nothing is kept of it.
    uint32_t key_of(uint64_t address) noexcept {
        for (size_t i = 0, place = hash(address); i < most_probes;
             ++i, place = (place + 1) % most) {
            uint64_t there = places_[place].load(std::memory_order_relaxed);
            if (there == 0 &&
                places_[place].compare_exchange_strong(there, address, std::memory_order_relaxed))
                there = address;
            if (there == address) return first_key + static_cast<uint32_t>(place);
        }
        return 0;
    }

  private:
    static constexpr uint32_t first_key = 0x1000;
    static constexpr size_t most_probes = 64;
    static size_t hash(uint64_t address) noexcept {  // Fibonacci hashing (Knuth, 6.4)
        return address * 0x9e3779b97f4a7c15ull >> 50;
    }
    std::atomic<uint64_t> places_[most]{};
};

}  // namespace vecmpi::library
