// SPDX-License-Identifier: BSD-3-Clause
// The memory through which the larger data of a communicator moves on its node, and who may touch
// which part of it when. Knows bytes only.
//
// Glossary
//   bay     the part of an arena for the data of one communicator
//   lane    a ring of slots in a bay: one for small data, one for large
//   round   what moves through one slot of every rank; numbered from 1 on, the same on all ranks
//   signal  the number of the last round of which a rank has done something
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/api.hpp"

namespace vecmpi::pipeline::node {

enum class LaneKind : uint8_t { small, large };
constexpr size_t number_of_lanes = 2;

// Powers of two many slots. A small call is one round, so that a stream of them stays in the first
// cache; large data go in rounds that stay in the second.
struct LaneShape {
    size_t slot_bytes;
    uint64_t slots;
};
constexpr size_t slot_header_bytes =
    64;  // of rounds in which the reader cannot know how much comes
constexpr LaneShape lane_shapes[number_of_lanes] = {
    {(size_t{4} << 10) + slot_header_bytes, 8},
    {(size_t{48} << 10) + slot_header_bytes, 4},
};
constexpr LaneShape shape_of(LaneKind kind) noexcept {
    return lane_shapes[static_cast<size_t>(kind)];
}

// filled: others may read what this rank has put into its slot. reduced: they may read its part of
// the result. read: this rank has read all that it had to, in everybody's slots.
enum class Signal : uint8_t { filled, reduced, read };
constexpr size_t number_of_signals = 3;

// A rank writes its own bays only. All zeros at first.
struct Bay {
    struct alignas(64) SignalLine {
        std::atomic<uint64_t> round;  // released by the owner
    };
    SignalLine signals[number_of_lanes][number_of_signals];
    unsigned char small[shape_of(LaneKind::small).slots][shape_of(LaneKind::small).slot_bytes];
    unsigned char large[shape_of(LaneKind::large).slots][shape_of(LaneKind::large).slot_bytes];
};
constexpr size_t bay_bytes = (sizeof(Bay) + 4095) / 4096 * 4096;

// The doors of a communicator's ranks, for who has written something that they may wait for. Empty
// where nobody sleeps.
class Doors {
  public:
    Doors() = default;
    explicit Doors(std::vector<Door*> by_rank) noexcept : by_rank_(std::move(by_rank)) {}
    void ring(int rank) const noexcept {
        if (!by_rank_.empty()) ring_if_asleep(*by_rank_[static_cast<size_t>(rank)]);
    }
    void ring_all() const noexcept {
        for (Door* door : by_rank_) ring_if_asleep(*door);
    }

  private:
    std::vector<Door*> by_rank_;
};

// One lane of all ranks' bays, and this rank's rounds on it. One thread at a time.
class Lane {
  public:
    Lane(LaneKind kind, int rank, const std::vector<Bay*>& bays, const Doors& doors) noexcept
        : bays_(bays), doors_(doors), me_(rank), kind_(kind) {}

    int rank() const noexcept { return me_; }
    int ranks() const noexcept { return static_cast<int>(bays_.size()); }
    size_t slot_bytes() const noexcept { return shape_of(kind_).slot_bytes; }

    // The number of the first of so many rounds, which this rank takes part in from now on.
    uint64_t begin(uint64_t rounds) noexcept {
        const uint64_t first = last_ + 1;
        last_ += rounds;
        return first;
    }
    unsigned char* slot(int rank, uint64_t round) const noexcept {
        Bay& bay = *bays_[static_cast<size_t>(rank)];
        const uint64_t at = round % shape_of(kind_).slots;
        return kind_ == LaneKind::small ? bay.small[at] : bay.large[at];
    }
    // The own slot may be written: all have read what was in it.
    bool is_free(uint64_t round) noexcept;
    void await_free(uint64_t round) noexcept;
    void tell(Signal signal, uint64_t round) noexcept;
    // The last round of which the rank has told it by now.
    uint64_t last_told(Signal signal, int rank) const noexcept;
    bool have_all_told(Signal signal, uint64_t round) const noexcept;
    // Returns last_told(): this round or a later one.
    uint64_t await(Signal signal, int rank, uint64_t round) const noexcept;
    void await_all(Signal signal, uint64_t round) const noexcept;

  private:
    std::atomic<uint64_t>& told(int rank, Signal signal) const noexcept {
        Bay& bay = *bays_[static_cast<size_t>(rank)];
        return bay.signals[static_cast<size_t>(kind_)][static_cast<size_t>(signal)].round;
    }
    const std::vector<Bay*>& bays_;  // by rank
    const Doors& doors_;
    int me_;
    LaneKind kind_;
    uint64_t last_ = 0;
    uint64_t all_read_ = 0;  // as far as is known
};

}  // namespace vecmpi::pipeline::node
