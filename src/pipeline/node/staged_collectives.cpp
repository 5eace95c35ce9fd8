// SPDX-License-Identifier: BSD-3-Clause
// What all collectives through staging buffers have in common, and Barrier and Bcast, copy-in
// copy-out.
#include "staged_collectives.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/api.hpp"
#include "library/api/algorithms.hpp"
#include "pipeline/node/api/butterfly_plan.hpp"

namespace vecmpi::pipeline::node {

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
    // As slots_wanted() promises: blocks that are small together fit into their parts.
    static_assert([] {
        for (size_t ranks = 2; ranks <= ranks_of_small_slot; ++ranks)
            if (small_data_bytes / ranks > part_bytes(small_ring.slot_bytes, ranks)) return false;
        return small_data_bytes + slot_header_bytes <= small_ring.slot_bytes;
    }());
    for (size_t i = 0; i < number_of_rings; ++i)
        part_bytes_[i] = part_bytes(rings_[i].slot_bytes(), buffers_.size());
}

void StagedCollectives::map_large_slots() noexcept {
    for (size_t rank = 0; rank < buffers_.size(); ++rank)
        node::map_large_slots(*buffers_[rank], rings_[1].shape(),
                              static_cast<int>(rank) == me() ? Touch::writes : Touch::reads);
}

SlotRing& StagedCollectives::ring_for_slices(size_t bytes) noexcept {
    return ranks() <= ranks_of_small_slot ? ring_for(bytes) : rings_[1];
}

void StagedCollectives::cut(int64_t elements, int slices) noexcept {
    const auto parts = static_cast<unsigned>(slices);
    for (unsigned r = 0; r < slices_.size(); ++r)
        slices_[r] = r < parts ? segment(elements, parts, r) : Segment{elements, 0};
}

void StagedCollectives::run_in(Fiber& fiber) noexcept {
    for (SlotRing& ring : rings_) ring.run_in(fiber);
}

// Nothing lies in the slots of the round.
void StagedCollectives::barrier() noexcept {
    SlotRing& ring = rings_[0];
    const uint64_t round = ring.begin(1);
    ring.publish(Signal::filled, round);
    ring.await_all(Signal::filled, round);
    ring.publish(Signal::read, round);
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
            kernels::copy_bytes(slot + slot_header_bytes, buffer + done, here);
            ring.publish(Signal::filled, round);
        } else if (sent == bytes && buffer != nullptr) {
            kernels::copy_bytes(buffer + done, slot + slot_header_bytes, here);
        }
        ring.publish(Signal::read, round);
        if (k + 1 < rounds) ring.make_progress();
    }
    ring.begin(rounds - 1);
    *root_bytes = sent;
}

}  // namespace vecmpi::pipeline::node
