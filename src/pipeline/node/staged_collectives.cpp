// SPDX-License-Identifier: BSD-3-Clause
// Copy-in copy-out.
#include "staged_collectives.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "library/api/algorithms.hpp"
#include "pipeline/node/api/butterfly_plan.hpp"

namespace vecmpi::pipeline::node {

namespace {

// Bytes of all others that everyone reads: that takes less than a second exchange of signals.
constexpr size_t most_read_directly = size_t{12} << 10;

}  // namespace

// The library's pairwise exchange in place leaves the result in the place of the rank's slice as
// well, and there are programs that look there.
bool StagedCollectives::leaves_slice_in_place(size_t bytes) noexcept {
    return bytes >= library::library_exchanges_pairs_from;
}

StagedCollectives::StagedCollectives(int rank, std::vector<StagingBuffer*> buffers,
                                     const RingShape& large, const Doors& doors)
    : buffers_(std::move(buffers)),
      given_blocks_(buffers_.size()),
      taken_blocks_(buffers_.size()),
      rings_{{SlotSize::small, small_ring, rank, buffers_, doors},
             {SlotSize::large, large, rank, buffers_, doors}},
      slices_(buffers_.size()),
      kept_(new unsigned char[values_kept_for(ranks()) * remote_piece_bytes]),
      doubling_(order_of_doubling(ranks())),
      halving_(order_of_halving(ranks())),
      pairwise_(order_of_pairwise_exchange(ranks(), rank)),
      scan_(order_of_scan(rank, true)),
      exscan_(order_of_scan(rank, false)),
      binomial_(doubling_),
      readable_(buffers_.size()),
      verdicts_(buffers_.size()) {
    for (size_t i = 0; i < number_of_rings; ++i) {
        const size_t parts = std::max<size_t>(buffers_.size(), 2) - 1;
        part_bytes_[i] = rings_[i].slot_bytes() / parts / 8 * 8;
    }
}

// What many ranks have of each other's slices does not fit into a small slot.
SlotRing& StagedCollectives::ring_for_slices(size_t bytes) noexcept {
    constexpr int ranks_of_small_slot = 32;
    return ranks() <= ranks_of_small_slot ? ring_for(bytes) : rings_[1];
}

void StagedCollectives::cut(int64_t elements, int slices) noexcept {
    const auto parts = static_cast<unsigned>(slices);
    for (unsigned r = 0; r < slices_.size(); ++r)
        slices_[r] = r < parts ? segment(elements, parts, r) : Segment{elements, 0};
}

namespace {
bool is_direct(size_t bytes, int ranks) noexcept {
    return bytes <= small_ring.slot_bytes &&
           bytes * static_cast<size_t>(ranks - 1) <= most_read_directly;
}
}  // namespace

AllreduceRun StagedCollectives::begin_allreduce(const Operands& what) noexcept {
    if (is_direct(what.bytes(), ranks()))
        return AllreduceRun(std::in_place_type<DirectRun>, *this, what, doubling_, true);
    cut(what.count, ranks());
    return AllreduceRun(std::in_place_type<SlicedRun>, *this, what, doubling_, ResultPlace::on_all,
                        0);
}

int StagedCollectives::allreduce(const Operands& what, Transport transport) noexcept {
    if (transport == Transport::single_copy && !is_direct(what.bytes(), ranks())) {
        cut(what.count, ranks());
        const Outcome outcome = allreduce_by_single_copy(what);
        if (outcome != Outcome::not_readable)
            return outcome == Outcome::done ? MPI_SUCCESS : MPI_ERR_OTHER;
    }
    AllreduceRun run = begin_allreduce(what);
    std::visit([](auto& one) noexcept { one.template advance<Waits::here>(); }, run);
    return MPI_SUCCESS;
}

void StagedCollectives::reduce(const Operands& what, int root) noexcept {
    const bool binomial = what.bytes() <= library::library_reduces_by_tree_up_to ||
                          what.count < ButterflyPlan{ranks(), 0}.core();
    if (binomial && binomial_root_ != root) {
        try {
            binomial_ = order_of_binomial_tree(ranks(), root);
            binomial_root_ = root;
        } catch (const std::bad_alloc&) {
            // Other rounding on this call.
        }
    }
    const CombiningOrder& order = binomial ? binomial_ : doubling_;
    if (is_direct(what.bytes(), ranks())) {
        DirectRun(*this, what, order, me() == root).advance<Waits::here>();
        return;
    }
    cut(what.count, ranks());
    SlicedRun(*this, what, order, ResultPlace::on_root, root).advance<Waits::here>();
}

const CombiningOrder& StagedCollectives::order_of_scatter(size_t bytes) const noexcept {
    return bytes < library::library_exchanges_pairs_from ? halving_ : pairwise_;
}

void StagedCollectives::reduce_scatter(const Operands& what, const RankCounts& counts,
                                       Transport transport) noexcept {
    int64_t first = 0;
    for (int rank = 0; rank < ranks(); ++rank) {
        slices_[static_cast<size_t>(rank)] = {first, counts[rank]};
        first += counts[rank];
    }
    if (transport == Transport::single_copy && scatter_by_single_copy(what)) return;
    SlicedRun(*this, what, order_of_scatter(what.bytes()), ResultPlace::in_slices, 0)
        .advance<Waits::here>();
}

void StagedCollectives::reduce_slices(const Operands& what, int slices) noexcept {
    cut(what.count, slices);
    Operands own = what;
    own.output = what.output_at(slices_[static_cast<size_t>(me())].first);
    SlicedRun(*this, own, doubling_, ResultPlace::in_slices, 0).advance<Waits::here>();
}

void StagedCollectives::bcast(unsigned char* buffer, size_t bytes, int root, size_t* root_bytes,
                              Transport transport) noexcept {
    if (transport == Transport::single_copy &&
        bcast_by_single_copy(buffer, bytes, root, root_bytes))
        return;
    bcast_through_slots(buffer, bytes, root, root_bytes);
}

void StagedCollectives::bcast_through_slots(unsigned char* buffer, size_t bytes, int root,
                                            size_t* root_bytes) noexcept {
    SlotRing& ring = ring_for(bytes + slot_header_bytes);
    const size_t in_round = ring.slot_bytes() - slot_header_bytes;
    const auto rounds_of = [=](size_t n) noexcept {
        return std::max<uint64_t>((n + in_round - 1) / in_round, 1);
    };
    const bool is_root = me() == root;
    size_t sent = buffer == nullptr && is_root ? 0 : bytes;
    uint64_t rounds = rounds_of(sent);
    const uint64_t first = ring.begin(1);
    for (uint64_t k = 0; k < rounds; ++k) {
        const uint64_t round = first + k;
        unsigned char* const slot = ring.slot(root, round);
        if (is_root) {
            ring.await_free(round);
            std::memcpy(slot, &sent, sizeof sent);
        } else {
            ring.await(Signal::filled, root, round);
            if (k == 0) {
                std::memcpy(&sent, slot, sizeof sent);
                rounds = rounds_of(sent);
            }
        }
        const size_t done = k * in_round, here = std::min(in_round, sent - std::min(sent, done));
        if (is_root) {
            if (here != 0) std::memcpy(slot + slot_header_bytes, buffer + done, here);
            ring.publish(Signal::filled, round);
        } else if (sent == bytes && buffer != nullptr) {
            std::memcpy(buffer + done, slot + slot_header_bytes, here);
        }
        ring.publish(Signal::read, round);
        if (k + 1 < rounds) offload::make_progress();
    }
    ring.begin(rounds - 1);
    *root_bytes = sent;
}

}  // namespace vecmpi::pipeline::node
