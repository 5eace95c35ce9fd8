// SPDX-License-Identifier: BSD-3-Clause
// Collectives through the staging buffers of a communicator's ranks. Copy-in copy-out: each rank
// puts its data into its own buffer, round by round, and reads those of the others. Small
// reductions are done by all ranks, larger ones slice by slice, one a rank. Single copy: where the
// system lets them, ranks read large data where they lie in the others' memory (single_copy.cpp).
// One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/api/profile.hpp"
#include "combining.hpp"
#include "movement.hpp"
#include "offload/api.hpp"
#include "peer_memory.hpp"
#include "pipeline/operands.hpp"
#include "pipeline/rank_counts.hpp"
#include "staging_buffer.hpp"

namespace vecmpi::pipeline::node {

enum class ResultPlace : uint8_t { on_all, on_root, in_slices };

class StagedCollectives {
  public:
    // A slice of a slot must hold the largest element.
    static constexpr int most_ranks = 512;
    // Which slots a call uses whose arguments say so. bytes: of the whole vector, or of all blocks
    // together.
    static constexpr SlotSize slots_wanted(Collective collective, size_t bytes,
                                           int ranks) noexcept {
        const bool has_announced_blocks = collective >= Collective::allgatherv;
        return has_announced_blocks || bytes > small_data_bytes || ranks > ranks_of_small_slot
                   ? SlotSize::large
                   : SlotSize::small;
    }

    // buffers: by rank, at most most_ranks, each with pages for its small slots. large: of the
    // large slots, which get theirs before a call wants them. doors: outlive this. Throws
    // std::bad_alloc.
    StagedCollectives(int rank, std::vector<StagingBuffer*> buffers, const RingShape& large,
                      const Doors& doors);
    StagedCollectives(const StagedCollectives&) = delete;
    StagedCollectives& operator=(const StagedCollectives&) = delete;

    // All ranks have given their large slots pages.
    void map_large_slots() noexcept;

    // All collectives run as its functions from now on, and leave off where they wait.
    void run_in(Fiber& fiber) noexcept;

    int ranks() const noexcept { return static_cast<int>(buffers_.size()); }

    void barrier() noexcept;
    // transport: not the library, and the same on all ranks; single_copy only where that is
    // allowed. Returns an error code: in place the input may be gone when another process's memory
    // turns out to be unreadable.
    int allreduce(const Operands& what, Transport transport) noexcept;
    void reduce(const Operands& what, int root) noexcept;
    // The output is this rank's slice: counts[rank] elements.
    void reduce_scatter(const Operands& what, const RankCounts& counts,
                        Transport transport) noexcept;
    // Of the ranks up to this one, its own input among them or not (the output of rank 0 stays
    // then).
    enum class Own : uint8_t { included, excluded };
    void scan(const Operands& what, Own own) noexcept;
    // The vector has so many slices, segment(count, slices, i), at most as many as there are ranks.
    // The own slice of the output becomes the result.
    void reduce_slices(const Operands& what, int slices) noexcept;
    // Rank i has the i-th slice of the output; afterwards all have all.
    void gather_slices(const Operands& what, int slices) noexcept;
    // *root_bytes: what the root has; as many, unless the program is wrong. A null buffer: this
    // rank has failed; the root says so by 0 bytes.
    void bcast(unsigned char* buffer, size_t bytes, int root, size_t* root_bytes,
               Transport transport) noexcept;
    // Blocks of `bytes` bytes, also a rank's own for itself. given: one, or if the movement has
    // parts one for each rank. taken: one of each rank, or of the root. They may be the same
    // memory. A null one: nothing is given or taken, or this rank has failed and takes part
    // without.
    void move_equal_blocks(const BlockMovement& what, const unsigned char* given,
                           unsigned char* taken, size_t bytes, Transport transport) noexcept;

    // The blocks of the call that comes next, by rank.
    MovedBlock* given_blocks() noexcept { return given_blocks_.data(); }
    MovedBlock* taken_blocks() noexcept { return taken_blocks_.data(); }
    // The own one of those given to all. All ranks know how long each is, and the largest.
    void move_to_all(size_t largest, Transport transport) noexcept;
    // Of the other flows. A rank knows only the lengths of its own blocks; where there is a root,
    // it knows all. To a root: who has a block of up to 4 KiB waits for nobody. in_place, on all
    // ranks: what is given lies where what is taken goes. Afterwards taken_blocks() are as long as
    // what came. False: more came than a block had room for.
    bool move_announced_blocks(const BlockMovement& what, bool in_place) noexcept;

    // All ranks can read the memory of all of these, by rank.
    void allow_single_copy(std::vector<PeerProcess> peers) noexcept { peers_ = std::move(peers); }
    bool allows_single_copy() const noexcept { return !peers_.empty(); }

  private:
    friend class SlicedRun;
    friend class NeighbourRun;
    // Where a rank lets the others read.
    struct ReadableMemory {
        uint64_t input = 0, output = 0;  // addresses
        uint64_t bytes = 0;              // of each; 0: nobody may
    };
    // not_readable: nothing is lost, and all ranks know. The functions below that return bool
    // return whether it is done.
    enum class Outcome : uint8_t { done, not_readable, failed };
    void exchange_addresses(const ReadableMemory& mine) noexcept;
    bool all_let_read() const noexcept;
    bool all_say(bool yes) noexcept;
    bool may_read_all() const noexcept;
    Outcome allreduce_by_single_copy(const Operands& what) noexcept;
    bool scatter_by_single_copy(const Operands& what) noexcept;
    bool reduce_own_slice(const Operands& what, const CombiningOrder& order,
                          unsigned char* to) noexcept;
    bool bcast_by_single_copy(unsigned char* buffer, size_t bytes, int root,
                              size_t* root_bytes) noexcept;
    // given: this rank's memory, in which the block for a reader begins at `stride` bytes times its
    // rank. taken_from(rank) -> MovedBlock.
    template <class TakenFrom>
    bool move_by_single_copy(const BlockMovement& what, const ReadableMemory& given, size_t stride,
                             const TakenFrom& taken_from) noexcept;
    bool read_in_parts(int rank, uint64_t from, unsigned char* to, size_t bytes) noexcept;

    bool is_direct(size_t bytes) const noexcept;
    void reduce_directly(const Operands& what, const CombiningOrder& order,
                         bool gets_result) noexcept;
    void reduce_by_slices(const Operands& what, const CombiningOrder& order, ResultPlace result,
                          int root) noexcept;
    void bcast_through_slots(unsigned char* buffer, size_t bytes, int root,
                             size_t* root_bytes) noexcept;
    void allgather_through_slots(const unsigned char* own, unsigned char* all,
                                 size_t bytes) noexcept;
    // given_to(rank), taken_from(rank) -> MovedBlock, of `largest` bytes at most. The first `begin`
    // bytes of each have been moved.
    template <class GivenTo, class TakenFrom>
    void move_through_slots(const BlockMovement& what, size_t begin, size_t largest,
                            const GivenTo& given_to, const TakenFrom& taken_from) noexcept;
    bool gather_announced_blocks(int root) noexcept;
    void give_rest(int root, uint64_t round, const MovedBlock& block) noexcept;
    bool fetch_blocks(int root, uint64_t round) noexcept;
    void fetch_rest(int root, uint64_t round, size_t longest) noexcept;
    bool is_read_at_once(size_t bytes) const noexcept;
    struct Slots;
    Slots slots_for(const BlockMovement& what, size_t bytes) noexcept;
    Slots slots_for_announcements() noexcept;
    void announce(const Slots& slots, uint64_t round, size_t largest) noexcept;
    bool take_own_block() noexcept;
    bool listen(const Slots& slots, uint64_t round, const BlockMovement& what,
                size_t* largest) noexcept;
    bool read_rest(const BlockMovement& what, size_t begin) noexcept;
    int after(int rank) const noexcept { return rank + 1 == ranks() ? 0 : rank + 1; }
    static void copy_own_block(const MovedBlock& given, const MovedBlock& taken) noexcept;
    // What more ranks have of each other's slices does not fit into a small slot.
    static constexpr int ranks_of_small_slot = 32;
    SlotRing& ring_for(size_t bytes) noexcept {
        return rings_[bytes <= small_ring.slot_bytes ? 0 : 1];
    }
    SlotRing& ring_for_slices(size_t bytes) noexcept;
    int me() const noexcept { return rings_[0].rank(); }
    template <class Value>
    void combine(const Operands& what, const CombiningOrder& order, int64_t elements,
                 size_t at_once_bytes, unsigned char* to, const Value& value) noexcept;
    void cut(int64_t elements, int slices) noexcept;
    const CombiningOrder& order_of_scatter(size_t bytes) const noexcept;
    static bool leaves_slice_in_place(size_t bytes) noexcept;

    const std::vector<StagingBuffer*> buffers_;            // by rank
    std::vector<MovedBlock> given_blocks_, taken_blocks_;  // likewise
    SlotRing rings_[number_of_rings];
    uint64_t given_ = 0, fetched_ = 0;  // rounds of this rank's own
    // Of a slot, where each other rank has a part of it.
    static constexpr size_t part_bytes(size_t slot_bytes, size_t ranks) noexcept {
        return slot_bytes / (std::max<size_t>(ranks, 2) - 1) / 8 * 8;
    }
    size_t part_bytes_[number_of_rings];
    std::vector<Segment> slices_;  // of the call under way
    std::unique_ptr<unsigned char[]> kept_;
    const CombiningOrder doubling_, halving_, pairwise_, scan_, exscan_;
    CombiningOrder binomial_;  // for the last root
    int binomial_root_ = -1;
    std::vector<PeerProcess> peers_;        // by rank; empty: nobody reads their memory
    std::vector<ReadableMemory> readable_;  // by rank, of the call under way
    std::vector<unsigned char> verdicts_;   // by rank
};

// ---- inside

// Two of them and a result stay in the first cache.
constexpr size_t piece_bytes = size_t{8} << 10;
// Three stay in the second, and it is worth a system call.
constexpr size_t remote_piece_bytes = size_t{64} << 10;

// value(rank, first, n, spare) -> where n of the rank's values lie, from element `first` on.
template <class Value>
void StagedCollectives::combine(const Operands& what, const CombiningOrder& order, int64_t elements,
                                size_t at_once_bytes, unsigned char* to,
                                const Value& value) noexcept {
    const int64_t in_piece = static_cast<int64_t>(at_once_bytes) / what.extent;
    for (int64_t first = 0; first < elements; first += in_piece) {
        const int64_t n = std::min(in_piece, elements - first);
        combine_values(
            order, kept_.get(), at_once_bytes, to + what.bytes_of(first),
            [&](int rank, unsigned char* spare) noexcept { return value(rank, first, n, spare); },
            [&](const unsigned char* left, const unsigned char* right,
                unsigned char* into) noexcept {
                offload::reduce_elements(left, right, into, n, what.type, what.extent, what.op);
            });
    }
}

}  // namespace vecmpi::pipeline::node
