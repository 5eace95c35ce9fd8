// SPDX-License-Identifier: BSD-3-Clause
// Runs the schedules of all ranks of a collective in memory, in an order drawn from a seed. For
// tests of src/pipeline only: it is slow, and it looks at every element that is read.
//
// Every step begins and ends at a time of its own. What lies between is undefined as in MPI: data
// that a step reads is read at its begin or at its end, what it writes cannot be read in between.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/schedules/schedule.hpp"

namespace fake {

using Element = uint64_t;
using Operation = Element (*)(Element left, Element right);

// What nobody wrote yet. To read it is an error.
constexpr Element uninitialised = 0xBAD0'DA7A'BAD0'DA7A;

// One way in which things may happen.
struct Order {
    enum class Sends : uint8_t { eager, synchronous, mixed } sends = Sends::mixed;
    // A rank begins a send only if fewer than so many sends before it in its schedule are still to
    // be completed. The same for receives, of which it may have `more_receives`.
    uint32_t limit = UINT32_MAX;
    uint64_t seed = 0;
    uint32_t more_receives = 0;
};

struct RankMemory {
    std::vector<Element> input, output;
};

struct Outcome {
    std::string error;  // empty: all steps are complete and every message was received
    int rounds = 0;     // messages one behind the other; with synchronous sends and no limit only
};

// schedules[r] works on memories[r]. Stops at the first error: a step that no order could complete
// (deadlock), a message without its other side or of another size, a place outside of its memory,
// input that is written, or something read that is not defined then.
Outcome run_in_memory(const std::vector<vecmpi::pipeline::Schedule>& schedules,
                      std::vector<RankMemory>& memories, Operation operation, const Order& order);

// Two steps of one rank that meet in memory, one of them writing, and neither waits for the other:
// which, or an empty string. Exact; its time grows with the square of the steps.
std::string find_race(const vecmpi::pipeline::Schedule& schedule);

// splitmix64: the hash of the tests and their random numbers.
constexpr uint64_t mixed(uint64_t x) noexcept {
    x += 0x9E37'79B9'7F4A'7C15;
    x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9;
    x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EB;
    return x ^ (x >> 31);
}

class Random {
  public:
    explicit Random(uint64_t seed) noexcept : state_(mixed(seed)) {}
    uint64_t below(uint64_t limit) noexcept {
        state_ = mixed(state_);
        return static_cast<uint64_t>((static_cast<unsigned __int128>(state_) * limit) >> 64);
    }
    bool coin() noexcept { return below(2) == 1; }

  private:
    uint64_t state_;
};

}  // namespace fake
