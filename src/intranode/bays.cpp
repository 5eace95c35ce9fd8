// SPDX-License-Identifier: BSD-3-Clause
// Collectives through bays.
#include "bays.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "butterfly.hpp"

namespace vecmpi {

namespace {

// Where everyone reads everything: less than what it takes to tell each other once more.
constexpr size_t most_read_directly = size_t{12} << 10;

// As MPICH 4 chooses.
constexpr size_t binomial_up_to = 2048;
constexpr size_t pairwise_from = size_t{512} << 10;

// MPICH's pairwise exchange in place leaves the result in the place of the rank's slice as well,
// and there are programs that look there.
bool leaves_slice_in_place(size_t bytes) noexcept { return bytes >= pairwise_from; }

}  // namespace

Bays::Bays(int rank, std::vector<Bay*> bays)
    : bays_(std::move(bays)),
      lanes_{{LaneKind::small, rank, bays_}, {LaneKind::large, rank, bays_}},
      slices_(bays_.size()),
      kept_(new unsigned char[values_kept_for(ranks()) * remote_piece_bytes]),
      doubling_(order_of_doubling(ranks())),
      halving_(order_of_halving(ranks())),
      pairwise_(order_of_pairwise_exchange(ranks(), rank)),
      binomial_(doubling_),
      cards_(bays_.size()),
      verdicts_(bays_.size()) {}

// What many ranks have of each other's slices does not fit into a small slot.
Lane& Bays::lane_for_slices(size_t bytes) noexcept {
    constexpr int ranks_of_small_slot = 32;
    return ranks() <= ranks_of_small_slot ? lane_for(bytes) : lanes_[1];
}

void Bays::cut_evenly(int64_t elements) noexcept {
    const auto parts = static_cast<unsigned>(ranks());
    for (unsigned r = 0; r < parts; ++r) slices_[r] = segment(elements, parts, r);
}

// One round; everyone who gets the result reads everything.
void Bays::reduce_directly(const Reduction& what, const CombiningOrder& order,
                           bool gets_result) noexcept {
    Lane& lane = lane_for(what.bytes());
    const uint64_t round = lane.begin(1);
    lane.await_free(round);
    std::memcpy(lane.slot(me(), round), what.input, what.bytes());
    lane.tell(Signal::filled, round);
    if (gets_result) {
        lane.await_all(Signal::filled, round);
        combine(what, order, what.elements, piece_bytes, what.output,
                [&](int rank, int64_t first, int64_t, unsigned char*) noexcept {
                    const unsigned char* const all =
                        rank == me() ? what.input : lane.slot(rank, round);
                    return all + static_cast<size_t>(first) * what.element_bytes;
                });
    }
    lane.tell(Signal::read, round);
}

// Each rank reduces its slice of the vector; round k moves the k-th part of every slice. In a
// rank's slot lie, one behind the other, what it has of every slice, and in the place of its own
// the result.
class SlicedRun {
  public:
    enum class Result { on_all, on_root, in_slices };

    SlicedRun(Bays& bays, const Reduction& what, const CombiningOrder& order, Result result,
              int root) noexcept
        : bays_(bays),
          what_(what),
          order_(order),
          lane_(bays.lane_for_slices(what.bytes())),
          result_(result),
          me_(bays.me()),
          others_collect_(result == Result::on_all || (result == Result::on_root && me_ != root)),
          collects_(result == Result::on_all || (result == Result::on_root && me_ == root)) {
        constexpr size_t line = 64;
        part_bytes_ = lane_.slot_bytes() / static_cast<size_t>(bays.ranks()) / line * line;
        in_part_ = static_cast<int64_t>(part_bytes_ / what.element_bytes);
        int64_t largest = 0;
        for (const Segment& slice : bays.slices_) largest = std::max(largest, slice.count);
        rounds_ = std::max<int64_t>((largest + in_part_ - 1) / in_part_, 1);
    }

    // Parts are given one round ahead, so that nobody waits for the slowest in every round.
    void run() noexcept {
        first_ = lane_.begin(static_cast<uint64_t>(rounds_));
        give(0);
        for (int64_t k = 0; k < rounds_; ++k) {
            if (k + 1 < rounds_) give(k + 1);
            reduce(k);
            collect(k);
            lane_.tell(Signal::read, number(k));
            if (k + 1 < rounds_) make_progress();
        }
    }

  private:
    uint64_t number(int64_t k) const noexcept { return first_ + static_cast<uint64_t>(k); }
    Segment part(int rank, int64_t k) const noexcept {
        const Segment& slice = bays_.slices_[static_cast<size_t>(rank)];
        const int64_t done = std::min(k * in_part_, slice.count);
        return {slice.first + done, std::min(in_part_, slice.count - done)};
    }
    size_t bytes_of(int64_t elements) const noexcept {
        return static_cast<size_t>(elements) * what_.element_bytes;
    }
    unsigned char* in_slot(int owner, int64_t k, int slice) const noexcept {
        return lane_.slot(owner, number(k)) + static_cast<size_t>(slice) * part_bytes_;
    }

    void give(int64_t k) noexcept {
        lane_.await_free(number(k));
        for (int rank = 0; rank < bays_.ranks(); ++rank) {
            const Segment given = part(rank, k);
            if (rank != me_)
                std::memcpy(in_slot(me_, k, rank), what_.input + bytes_of(given.first),
                            bytes_of(given.count));
        }
        lane_.tell(Signal::filled, number(k));
    }

    void reduce(int64_t k) noexcept {
        const Segment own = part(me_, k);
        lane_.await_all(Signal::filled, number(k));
        // In place of the whole vector the result may lie across the input.
        const bool in_own_slot =
            others_collect_ || (result_ == Result::in_slices && what_.output == what_.input);
        const int64_t output_first =
            result_ == Result::in_slices ? bays_.slices_[static_cast<size_t>(me_)].first : 0;
        unsigned char* const output =
            what_.output ? what_.output + bytes_of(own.first - output_first) : nullptr;
        unsigned char* const to = in_own_slot ? in_slot(me_, k, me_) : output;
        bays_.combine(what_, order_, own.count, piece_bytes, to,
                      [&](int rank, int64_t first, int64_t, unsigned char*) noexcept {
                          const unsigned char* const all = rank == me_
                                                               ? what_.input + bytes_of(own.first)
                                                               : in_slot(rank, k, me_);
                          return all + bytes_of(first);
                      });
        if (others_collect_) lane_.tell(Signal::reduced, number(k));
        if (in_own_slot && (collects_ || result_ == Result::in_slices))
            std::memmove(output, to, bytes_of(own.count));
        if (in_own_slot && result_ == Result::in_slices && leaves_slice_in_place(what_.bytes()))
            std::memcpy(what_.output + bytes_of(own.first), to, bytes_of(own.count));
    }

    void collect(int64_t k) noexcept {
        if (!collects_) return;
        for (int i = 1; i < bays_.ranks(); ++i) {
            const int rank = (me_ + i) % bays_.ranks();
            const Segment got = part(rank, k);
            lane_.await(Signal::reduced, rank, number(k));
            std::memcpy(what_.output + bytes_of(got.first), in_slot(rank, k, rank),
                        bytes_of(got.count));
        }
    }

    Bays& bays_;
    const Reduction& what_;
    const CombiningOrder& order_;
    Lane& lane_;
    const Result result_;
    const int me_;
    const bool others_collect_, collects_;
    size_t part_bytes_;
    int64_t in_part_, rounds_;
    uint64_t first_ = 0;
};

namespace {
bool is_direct(size_t bytes, int ranks) noexcept {
    return bytes <= shape_of(LaneKind::small).slot_bytes &&
           bytes * static_cast<size_t>(ranks - 1) <= most_read_directly;
}
}  // namespace

int Bays::allreduce(const Reduction& what, Way way) noexcept {
    if (is_direct(what.bytes(), ranks())) {
        reduce_directly(what, doubling_, true);
        return MPI_SUCCESS;
    }
    cut_evenly(what.elements);
    if (way == Way::in_one_copy) {
        const Outcome outcome = allreduce_in_one_copy(what);
        if (outcome != Outcome::not_readable)
            return outcome == Outcome::done ? MPI_SUCCESS : MPI_ERR_OTHER;
    }
    SlicedRun(*this, what, doubling_, SlicedRun::Result::on_all, 0).run();
    return MPI_SUCCESS;
}

void Bays::reduce(const Reduction& what, int root) noexcept {
    const bool binomial =
        what.bytes() <= binomial_up_to || what.elements < ButterflyPlan{ranks(), 0}.core();
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
        reduce_directly(what, order, me() == root);
        return;
    }
    cut_evenly(what.elements);
    SlicedRun(*this, what, order, SlicedRun::Result::on_root, root).run();
}

const CombiningOrder& Bays::order_of_scatter(size_t bytes) const noexcept {
    return bytes < pairwise_from ? halving_ : pairwise_;
}

void Bays::scatter(const Reduction& what, Way way) noexcept {
    if (way == Way::in_one_copy && scatter_in_one_copy(what)) return;
    SlicedRun(*this, what, order_of_scatter(what.bytes()), SlicedRun::Result::in_slices, 0).run();
}

void Bays::reduce_scatter(const Reduction& what, RankArray counts, Way way) noexcept {
    int64_t first = 0;
    for (int rank = 0; rank < ranks(); ++rank) {
        slices_[static_cast<size_t>(rank)] = {first, counts[rank]};
        first += counts[rank];
    }
    scatter(what, way);
}

void Bays::reduce_scatter_block(const Reduction& what, MPI_Count count, Way way) noexcept {
    for (int rank = 0; rank < ranks(); ++rank)
        slices_[static_cast<size_t>(rank)] = {rank * count, count};
    scatter(what, way);
}

void Bays::bcast(unsigned char* buffer, size_t bytes, int root, size_t* told, Way way) noexcept {
    if (way == Way::in_one_copy && bcast_in_one_copy(buffer, bytes, root, told)) return;
    bcast_in_rounds(buffer, bytes, root, told);
}

void Bays::allgather(const unsigned char* own, unsigned char* all, size_t bytes, Way way) noexcept {
    if (way == Way::in_one_copy && allgather_in_one_copy(own, all, bytes)) return;
    allgather_in_rounds(own, all, bytes);
}

void Bays::bcast_in_rounds(unsigned char* buffer, size_t bytes, int root,
                           size_t* told_bytes) noexcept {
    Lane& lane = lane_for(bytes + slot_header_bytes);
    const size_t in_round = lane.slot_bytes() - slot_header_bytes;
    const auto rounds_of = [=](size_t n) noexcept {
        return std::max<uint64_t>((n + in_round - 1) / in_round, 1);
    };
    const bool is_root = me() == root;
    size_t told = buffer == nullptr && is_root ? 0 : bytes;
    uint64_t rounds = rounds_of(told);
    const uint64_t first = lane.begin(1);
    for (uint64_t k = 0; k < rounds; ++k) {
        const uint64_t round = first + k;
        unsigned char* const slot = lane.slot(root, round);
        if (is_root) {
            lane.await_free(round);
            std::memcpy(slot, &told, sizeof told);
        } else {
            lane.await(Signal::filled, root, round);
            if (k == 0) {
                std::memcpy(&told, slot, sizeof told);
                rounds = rounds_of(told);
            }
        }
        const size_t done = k * in_round, here = std::min(in_round, told - std::min(told, done));
        if (is_root) {
            if (here != 0) std::memcpy(slot + slot_header_bytes, buffer + done, here);
            lane.tell(Signal::filled, round);
        } else if (told == bytes && buffer != nullptr) {
            std::memcpy(buffer + done, slot + slot_header_bytes, here);
        }
        lane.tell(Signal::read, round);
        if (k + 1 < rounds) make_progress();
    }
    lane.begin(rounds - 1);
    *told_bytes = told;
}

void Bays::copy_own_block(const unsigned char* own, unsigned char* all,
                          size_t bytes) const noexcept {
    if (own == nullptr || all == nullptr) return;
    unsigned char* const place = all + static_cast<size_t>(me()) * bytes;
    if (place != own) std::memcpy(place, own, bytes);
}

void Bays::allgather_in_rounds(const unsigned char* own, unsigned char* all,
                               size_t bytes) noexcept {
    Lane& lane = lane_for(bytes);
    const size_t in_round = lane.slot_bytes();
    const uint64_t rounds = (bytes + in_round - 1) / in_round;
    const uint64_t first = lane.begin(rounds);
    const auto here = [=](uint64_t k) noexcept { return std::min(in_round, bytes - k * in_round); };
    const auto give = [&](uint64_t k) noexcept {
        lane.await_free(first + k);
        if (own != nullptr) std::memcpy(lane.slot(me(), first + k), own + k * in_round, here(k));
        lane.tell(Signal::filled, first + k);
    };
    give(0);
    copy_own_block(own, all, bytes);
    for (uint64_t k = 0; k < rounds; ++k) {
        if (k + 1 < rounds) give(k + 1);
        for (int i = 1; i < ranks(); ++i) {
            const int rank = (me() + i) % ranks();
            lane.await(Signal::filled, rank, first + k);
            if (all == nullptr) continue;
            std::memcpy(all + static_cast<size_t>(rank) * bytes + k * in_round,
                        lane.slot(rank, first + k), here(k));
        }
        lane.tell(Signal::read, first + k);
        if (k + 1 < rounds) make_progress();
    }
}

}  // namespace vecmpi
