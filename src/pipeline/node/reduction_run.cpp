// SPDX-License-Identifier: BSD-3-Clause
// The steps of a reduction through staging buffers.
#include "reduction_run.hpp"

#include <algorithm>
#include <cstring>

#include "staged_collectives.hpp"

namespace vecmpi::pipeline::node {

namespace {

// Each returns whether it is so; with Waits::here it is, in the end.
template <Waits waits>
bool is_free(SlotRing& ring, uint64_t round) noexcept {
    if constexpr (waits == Waits::elsewhere) return ring.is_free(round);
    ring.await_free(round);
    return true;
}
template <Waits waits>
bool has_published(const SlotRing& ring, Signal signal, int rank, uint64_t round) noexcept {
    if constexpr (waits == Waits::elsewhere) return ring.last_published(signal, rank) >= round;
    ring.await(signal, rank, round);
    return true;
}
template <Waits waits>
bool have_all_published(const SlotRing& ring, Signal signal, uint64_t round) noexcept {
    if constexpr (waits == Waits::elsewhere) return ring.have_all_published(signal, round);
    ring.await_all(signal, round);
    return true;
}

}  // namespace

DirectRun::DirectRun(StagedCollectives& staged, const Operands& what, const CombiningOrder& order,
                     bool gets_result) noexcept
    : staged_(staged),
      what_(what),
      order_(order),
      ring_(staged.ring_for(what.bytes())),
      round_(ring_.begin(1)),
      gets_result_(gets_result) {}

template <Waits waits>
bool DirectRun::advance() noexcept {
    const int me = staged_.me();
    if (!given_) {
        if (!is_free<waits>(ring_, round_)) return false;
        std::memcpy(ring_.slot(me, round_), what_.input, what_.bytes());
        ring_.publish(Signal::filled, round_);
        given_ = true;
    }
    if (gets_result_) {
        if (!have_all_published<waits>(ring_, Signal::filled, round_)) return false;
        staged_.combine(what_, order_, what_.count, piece_bytes, what_.output_at(0),
                        [&](int rank, int64_t first, int64_t, unsigned char*) noexcept {
                            const unsigned char* const all =
                                rank == me ? what_.input_at(0) : ring_.slot(rank, round_);
                            return all + what_.bytes_of(first);
                        });
    }
    ring_.publish(Signal::read, round_);
    return true;
}

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
template <Waits waits>
bool SlicedRun::advance() noexcept {
    for (; ended_ < rounds_; ++ended_) {
        for (; given_ < std::min(ended_ + 2, rounds_); ++given_) {
            if (!is_free<waits>(ring_, number(given_))) return false;
            give(given_);
        }
        if (reduced_ == ended_) {
            if (!have_all_published<waits>(ring_, Signal::filled, number(reduced_))) return false;
            reduce(reduced_++);
            collected_ = 0;
        }
        for (; collects_ && collected_ < staged_.ranks() - 1; ++collected_) {
            const int rank = (me_ + 1 + collected_) % staged_.ranks();
            if (!has_published<waits>(ring_, Signal::reduced, rank, number(ended_))) return false;
            collect(rank, ended_);
        }
        ring_.publish(Signal::read, number(ended_));
        if (waits == Waits::here && ended_ + 1 < rounds_) offload::make_progress();
    }
    return true;
}

Segment SlicedRun::part(int rank, int64_t k) const noexcept {
    const Segment& slice = staged_.slices_[static_cast<size_t>(rank)];
    const int64_t done = std::min(k * in_part_, slice.count);
    return {slice.first + done, std::min(in_part_, slice.count - done)};
}

void SlicedRun::give(int64_t k) noexcept {
    for (int rank = 0; rank < staged_.ranks(); ++rank) {
        const Segment given = part(rank, k);
        if (rank != me_)
            std::memcpy(in_slot(me_, k, rank), what_.input_at(given.first),
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
        std::memcpy(what_.output_at(own.first), to, what_.bytes_of(own.count));
}

void SlicedRun::collect(int rank, int64_t k) noexcept {
    const Segment got = part(rank, k);
    std::memcpy(what_.output_at(got.first), in_slot(rank, k, rank), what_.bytes_of(got.count));
}

template bool DirectRun::advance<Waits::here>() noexcept;
template bool DirectRun::advance<Waits::elsewhere>() noexcept;
template bool SlicedRun::advance<Waits::here>() noexcept;
template bool SlicedRun::advance<Waits::elsewhere>() noexcept;

}  // namespace vecmpi::pipeline::node
