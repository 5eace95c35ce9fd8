// SPDX-License-Identifier: BSD-3-Clause
// Scan and Exscan: each rank puts its input into its slots, round by round, and reads those of the
// ranks below.
#include <algorithm>

#include "kernels/api.hpp"
#include "staged_collectives.hpp"

namespace vecmpi::pipeline::node {

void StagedCollectives::scan(const Operands& what, Own own) noexcept {
    const CombiningOrder& order = own == Own::included ? scan_ : exscan_;
    SlotRing& ring = ring_for(what.bytes());
    const int64_t in_round = static_cast<int64_t>(ring.slot_bytes()) / what.extent;
    const int64_t rounds = (what.count + in_round - 1) / in_round;
    const uint64_t first = ring.begin(static_cast<uint64_t>(rounds));
    const auto number = [=](int64_t k) noexcept { return first + static_cast<uint64_t>(k); };
    const auto elements = [&](int64_t k) noexcept {
        return std::min<int64_t>(in_round, what.count - k * in_round);
    };
    const auto give = [&](int64_t k) noexcept {
        ring.await_free(number(k));
        kernels::copy_bytes(ring.slot(me(), number(k)), what.input_at(k * in_round),
                            what.bytes_of(elements(k)));
        ring.publish(Signal::filled, number(k));
    };
    give(0);
    for (int64_t k = 0; k < rounds; ++k) {
        if (k + 1 < rounds) give(k + 1);  // before this round's result may overwrite the input
        for (int rank = 0; rank < me(); ++rank) ring.await(Signal::filled, rank, number(k));
        if (order.steps.size() == 1)
            kernels::copy_bytes(what.output_at(k * in_round),
                                ring.slot(order.steps.front(), number(k)),
                                what.bytes_of(elements(k)));
        else if (!order.steps.empty())
            combine(what, order, elements(k), piece_bytes, what.output_at(k * in_round),
                    [&](int rank, int64_t at, int64_t, unsigned char*) noexcept {
                        return ring.slot(rank, number(k)) + what.bytes_of(at);
                    });
        ring.publish(Signal::read, number(k));
        if (k + 1 < rounds) ring.make_progress();
    }
}

}  // namespace vecmpi::pipeline::node
