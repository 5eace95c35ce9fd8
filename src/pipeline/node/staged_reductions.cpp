// SPDX-License-Identifier: BSD-3-Clause
// Reductions, copy-in copy-out.
#include <algorithm>
#include <cstring>

#include "kernels/api.hpp"
#include "library/api/algorithms.hpp"
#include "pipeline/node/api/butterfly_plan.hpp"
#include "staged_collectives.hpp"

namespace vecmpi::pipeline::node {

namespace {

// Bytes of all others that everyone reads: that takes less than a second exchange of signals.
constexpr size_t most_read_directly = size_t{12} << 10;

}  // namespace

bool StagedCollectives::is_direct(size_t bytes) const noexcept {
    return bytes <= small_ring.slot_bytes &&
           bytes * static_cast<size_t>(ranks() - 1) <= most_read_directly;
}

// One round; everyone who gets the result reads everything.
void StagedCollectives::reduce_directly(const Operands& what, const CombiningOrder& order,
                                        bool gets_result) noexcept {
    SlotRing& ring = ring_for(what.bytes());
    const uint64_t round = ring.begin(1);
    ring.await_free(round);
    kernels::copy_bytes(ring.slot(me(), round), what.input, what.bytes());
    ring.publish(Signal::filled, round);
    if (gets_result) {
        ring.await_all(Signal::filled, round);
        combine(what, order, what.count, piece_bytes, what.output_at(0),
                [&](int rank, int64_t first, int64_t, unsigned char*) noexcept {
                    const unsigned char* const all =
                        rank == me() ? what.input_at(0) : ring.slot(rank, round);
                    return all + what.bytes_of(first);
                });
    }
    ring.publish(Signal::read, round);
}

// Each rank reduces its slice of the vector. Round k moves the k-th part of every slice. A rank's
// slot holds what it has of every slice, one behind the other; in the place of its own slice it
// holds the result. The caller has cut the vector into slices before.
class SlicedRun {
  public:
    SlicedRun(StagedCollectives& staged, const Operands& what, const CombiningOrder& order,
              ResultPlace result, int root) noexcept;
    void run() noexcept;

  private:
    uint64_t number(int64_t k) const noexcept { return first_ + static_cast<uint64_t>(k); }
    Segment part(int rank, int64_t k) const noexcept;
    unsigned char* in_slot(int owner, int64_t k, int slice) const noexcept {
        return ring_.slot(owner, number(k)) + static_cast<size_t>(slice) * part_bytes_;
    }
    void give(int64_t k) noexcept;
    void reduce(int64_t k) noexcept;
    void collect(int64_t k) noexcept;

    StagedCollectives& staged_;
    const Operands what_;
    const CombiningOrder& order_;
    SlotRing& ring_;
    const ResultPlace result_;
    const int me_;
    const bool others_collect_, collects_;
    size_t part_bytes_;
    int64_t in_part_, rounds_;
    uint64_t first_;
};

SlicedRun::SlicedRun(StagedCollectives& staged, const Operands& what, const CombiningOrder& order,
                     ResultPlace result, int root) noexcept
    : staged_(staged),
      what_(what),
      order_(order),
      ring_(staged.ring_for_slices(what.bytes())),
      result_(result),
      me_(staged.me()),
      others_collect_(result == ResultPlace::on_all ||
                      (result == ResultPlace::on_root && me_ != root)),
      collects_(result == ResultPlace::on_all || (result == ResultPlace::on_root && me_ == root)) {
    constexpr size_t line = 64;
    size_t slices = staged.slices_.size();
    while (slices > 1 && staged.slices_[slices - 1].count == 0) --slices;
    part_bytes_ = ring_.slot_bytes() / slices / line * line;
    in_part_ = static_cast<int64_t>(part_bytes_) / what.extent;
    int64_t largest = 0;
    for (const Segment& slice : staged.slices_) largest = std::max(largest, slice.count);
    rounds_ = std::max<int64_t>((largest + in_part_ - 1) / in_part_, 1);
    first_ = ring_.begin(static_cast<uint64_t>(rounds_));
}

// Parts are given one round ahead, so that nobody waits for the slowest in every round.
void SlicedRun::run() noexcept {
    give(0);
    for (int64_t k = 0; k < rounds_; ++k) {
        if (k + 1 < rounds_) give(k + 1);
        ring_.await_all(Signal::filled, number(k));
        reduce(k);
        if (collects_) collect(k);
        ring_.publish(Signal::read, number(k));
        if (k + 1 < rounds_) ring_.make_progress();
    }
}

Segment SlicedRun::part(int rank, int64_t k) const noexcept {
    const Segment& slice = staged_.slices_[static_cast<size_t>(rank)];
    const int64_t done = std::min(k * in_part_, slice.count);
    return {slice.first + done, std::min(in_part_, slice.count - done)};
}

void SlicedRun::give(int64_t k) noexcept {
    ring_.await_free(number(k));
    for (int rank = 0; rank < staged_.ranks(); ++rank) {
        const Segment given = part(rank, k);
        if (rank != me_)
            kernels::copy_bytes(in_slot(me_, k, rank), what_.input_at(given.first),
                                what_.bytes_of(given.count));
    }
    ring_.publish(Signal::filled, number(k));
}

void SlicedRun::reduce(int64_t k) noexcept {
    const Segment own = part(me_, k);
    // In place of the whole vector the result may lie across the input.
    const bool in_own_slot =
        others_collect_ || (result_ == ResultPlace::in_slices && what_.output == what_.input);
    const int64_t output_first =
        result_ == ResultPlace::in_slices ? staged_.slices_[static_cast<size_t>(me_)].first : 0;
    unsigned char* const output =
        what_.output ? what_.output_at(own.first - output_first) : nullptr;
    unsigned char* const to = in_own_slot ? in_slot(me_, k, me_) : output;
    staged_.combine(what_, order_, own.count, piece_bytes, to,
                    [&](int rank, int64_t first, int64_t, unsigned char*) noexcept {
                        const unsigned char* const all =
                            rank == me_ ? what_.input_at(own.first) : in_slot(rank, k, me_);
                        return all + what_.bytes_of(first);
                    });
    if (others_collect_) ring_.publish(Signal::reduced, number(k));
    if (in_own_slot && (collects_ || result_ == ResultPlace::in_slices))
        std::memmove(output, to, what_.bytes_of(own.count));
    if (in_own_slot && result_ == ResultPlace::in_slices &&
        StagedCollectives::leaves_slice_in_place(what_.bytes()))
        kernels::copy_bytes(what_.output_at(own.first), to, what_.bytes_of(own.count));
}

void SlicedRun::collect(int64_t k) noexcept {
    for (int rank = staged_.after(me_); rank != me_; rank = staged_.after(rank)) {
        ring_.await(Signal::reduced, rank, number(k));
        const Segment got = part(rank, k);
        kernels::copy_bytes(what_.output_at(got.first), in_slot(rank, k, rank),
                            what_.bytes_of(got.count));
    }
}

void StagedCollectives::reduce_by_slices(const Operands& what, const CombiningOrder& order,
                                         ResultPlace result, int root) noexcept {
    SlicedRun(*this, what, order, result, root).run();
}

int StagedCollectives::allreduce(const Operands& what, Transport transport) noexcept {
    if (is_direct(what.bytes())) {
        reduce_directly(what, doubling_, true);
        return MPI_SUCCESS;
    }
    cut(what.count, ranks());
    if (transport == Transport::single_copy) {
        const Outcome outcome = allreduce_by_single_copy(what);
        if (outcome != Outcome::not_readable)
            return outcome == Outcome::done ? MPI_SUCCESS : MPI_ERR_OTHER;
    }
    reduce_by_slices(what, doubling_, ResultPlace::on_all, 0);
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
    if (is_direct(what.bytes())) return reduce_directly(what, order, me() == root);
    cut(what.count, ranks());
    reduce_by_slices(what, order, ResultPlace::on_root, root);
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
    reduce_by_slices(what, order_of_scatter(what.bytes()), ResultPlace::in_slices, 0);
}

void StagedCollectives::reduce_slices(const Operands& what, int slices) noexcept {
    cut(what.count, slices);
    Operands own = what;
    own.output = what.output_at(slices_[static_cast<size_t>(me())].first);
    reduce_by_slices(own, doubling_, ResultPlace::in_slices, 0);
}

}  // namespace vecmpi::pipeline::node
