// SPDX-License-Identifier: BSD-3-Clause
// The memory through which the larger data of a communicator moves on its node, and who may touch
// which part of it when. Knows bytes only.
//
// Glossary
//   staging buffer  the part of an arena for the data of one communicator
//   slot ring       slots of a staging buffer that are used again in a circle: a ring for small
//   data,
//                   one for large
//   round           what moves through one slot of every rank; numbered from 1 on, the same on all
//   signal          the number of the last round of which a rank has done something
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/api.hpp"
#include "fiber.hpp"

namespace vecmpi::pipeline::node {

enum class SlotSize : uint8_t { small, large };
constexpr size_t number_of_rings = 2;

// Of rounds in which the reader cannot know how much comes.
constexpr size_t slot_header_bytes = 64;

struct RingShape {
    size_t slot_bytes;
    uint64_t slots;  // a power of two
    constexpr size_t bytes() const noexcept { return slot_bytes * slots; }
};
constexpr RingShape ring_shape(size_t slot_data_bytes, uint64_t slots) noexcept {
    return {slot_data_bytes + slot_header_bytes, slots};
}
// A small call is one round, so that a stream of them stays in the first cache.
constexpr size_t small_data_bytes = size_t{4} << 10;
constexpr RingShape small_ring = ring_shape(small_data_bytes, 8);
// Large data go in rounds. A wide ring is larger than a core's second cache: when a slot is written
// again, its readers' caches have forgotten it, and nobody must be asked to (docs/intranode.md has
// figures). Many ranks have a part of each slot each, so theirs are longer. A narrow one takes
// little memory.
enum class RingWidth : uint8_t { wide, narrow };
constexpr RingShape wide_ring_of_few = ring_shape(size_t{16} << 10, 128);
constexpr RingShape wide_ring = ring_shape(size_t{48} << 10, 32);
constexpr RingShape narrow_ring = ring_shape(size_t{48} << 10, 4);
constexpr int few_ranks = 4, most_ranks_of_wide_ring = 16;
constexpr RingShape large_ring(RingWidth width, int ranks) noexcept {
    if (width == RingWidth::narrow || ranks > most_ranks_of_wide_ring) return narrow_ring;
    return ranks <= few_ranks ? wide_ring_of_few : wide_ring;
}

// filled: others may read what this rank has put into its slot. reduced: they may read its part of
// the result. read: this rank has read all that it had to, in everybody's slots. given, fetched:
// rounds that are not the same on all, as each rank counts its own (gathered_blocks.cpp).
enum class Signal : uint8_t { filled, reduced, read, given, fetched };
constexpr size_t number_of_signals = 5;

// A rank writes its own only. All zeros at first. The large ring's slots lie behind it.
struct StagingBuffer {
    struct alignas(64) SignalLine {
        std::atomic<uint64_t> round;  // released by the owner
    };
    SignalLine signals[number_of_rings][number_of_signals];
    unsigned char small[small_ring.bytes()];
    unsigned char* large() noexcept { return reinterpret_cast<unsigned char*>(this + 1); }
};
static_assert(sizeof(StagingBuffer) % 64 == 0);
constexpr size_t staging_buffer_bytes(RingWidth width) noexcept {
    const size_t large = width == RingWidth::narrow
                             ? narrow_ring.bytes()
                             : std::max(wide_ring.bytes(), wide_ring_of_few.bytes());
    return (sizeof(StagingBuffer) + large + 4095) / 4096 * 4096;
}
// Touches slots, so that no call meets a page that is not mapped yet. There are more of them than
// calls that a trial would forgive.
enum class Touch : uint8_t { reads, writes };  // a peer's, the own ones before they are used
void map_small_slots(StagingBuffer& buffer, Touch touch) noexcept;
void map_large_slots(StagingBuffer& buffer, const RingShape& large, Touch touch) noexcept;

// The doors of a communicator's ranks. Whoever has written what a rank may wait for rings there.
// Empty where nobody sleeps.
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

// The rings of one kind of all ranks, and this rank's rounds on them. One thread at a time.
class SlotRing {
  public:
    SlotRing(SlotSize kind, const RingShape& shape, int rank,
             const std::vector<StagingBuffer*>& buffers, const Doors& doors) noexcept
        : buffers_(buffers), doors_(doors), shape_(shape), me_(rank), kind_(kind) {}

    // Waits here no more, but leaves the fiber.
    void run_in(Fiber& fiber) noexcept { fiber_ = &fiber; }

    int rank() const noexcept { return me_; }
    int ranks() const noexcept { return static_cast<int>(buffers_.size()); }
    const RingShape& shape() const noexcept { return shape_; }
    size_t slot_bytes() const noexcept { return shape_.slot_bytes; }
    uint64_t slots() const noexcept { return shape_.slots; }

    // The number of the first of so many rounds, which this rank takes part in from now on.
    uint64_t begin(uint64_t rounds) noexcept {
        const uint64_t first = last_ + 1;
        last_ += rounds;
        return first;
    }
    unsigned char* slot(int rank, uint64_t round) const noexcept {
        StagingBuffer& buffer = *buffers_[static_cast<size_t>(rank)];
        unsigned char* const first = kind_ == SlotSize::small ? buffer.small : buffer.large();
        return first + (round & (shape_.slots - 1)) * shape_.slot_bytes;
    }
    // Until the own slot may be written: all have read what was in it.
    void await_free(uint64_t round) noexcept;
    void await_all_free() noexcept { await_free(last_ + slots()); }
    void publish(Signal signal, uint64_t round) noexcept;
    // The last round for which the rank has published the signal.
    uint64_t last_published(Signal signal, int rank) const noexcept;
    // Returns last_published(): this round or a later one.
    uint64_t await(Signal signal, int rank, uint64_t round) const noexcept;
    void await_all(Signal signal, uint64_t round) const noexcept;
    // Between rounds: the library may have something to do. In a fiber whoever looks sees to that.
    void make_progress() const noexcept;

  private:
    std::atomic<uint64_t>& round_of(int rank, Signal signal) const noexcept {
        StagingBuffer& buffer = *buffers_[static_cast<size_t>(rank)];
        return buffer.signals[static_cast<size_t>(kind_)][static_cast<size_t>(signal)].round;
    }
    const std::vector<StagingBuffer*>& buffers_;  // by rank
    const Doors& doors_;
    const RingShape shape_;
    int me_;
    SlotSize kind_;
    uint64_t last_ = 0;
    uint64_t all_read_ = 0;  // as far as is known
    Fiber* fiber_ = nullptr;
};

}  // namespace vecmpi::pipeline::node
