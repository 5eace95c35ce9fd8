// SPDX-License-Identifier: BSD-3-Clause
// In which order the values of ranks are combined, so that sums of floats have the bits of MPICH's
// algorithms. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vecmpi::pipeline::node {

// In postfix: a rank stands for its value; `combine` makes one of the last two values.
struct CombiningOrder {
    static constexpr int16_t combine = -1;
    std::vector<int16_t> steps;
};
// Memory that a rank needs besides the result, for any order of so many ranks: in values.
size_t values_kept_for(int ranks) noexcept;

// Allreduce and, above 2 KiB, Reduce: the extra ranks are folded onto their neighbours, then
// partners at distance 1, 2, 4 ...
CombiningOrder order_of_doubling(int ranks);
// Reduce up to 2 KiB: binomial tree.
CombiningOrder order_of_binomial_tree(int ranks, int root);
// Reduce_scatter below 512 KiB: as doubling, but partners at half the distance first.
CombiningOrder order_of_halving(int ranks);
// Reduce_scatter above: one after the other, downwards from the rank itself.
CombiningOrder order_of_pairwise_exchange(int ranks, int rank);

// Scan and Exscan: of the ranks below, those at the distances that are bits of the rank, as trees
// of partners at distance 1, 2, 4 ... (MPICH's recursive doubling). Empty for the Exscan of rank 0.
CombiningOrder order_of_scan(int rank, bool includes_own);

// to = the values of the ranks combined, `bytes` each.
//   value(rank, spare) -> where it lies: in `spare`, kept_bytes long, perhaps, or in `to`, which is
//   written last
//   reduce(left, right, into): `into` may be left or right
//   kept: memory for values_kept_for(ranks) values, kept_bytes each
template <class Value, class Reduce>
void combine_values(const CombiningOrder& order, unsigned char* kept, size_t kept_bytes,
                    unsigned char* to, const Value& value, const Reduce& reduce) noexcept {
    constexpr size_t most = 64;
    const unsigned char* taken[most];
    size_t n = 0;
    const size_t steps = order.steps.size();
    for (size_t i = 0; i < steps; ++i) {
        if (order.steps[i] != CombiningOrder::combine) {
            taken[n] = value(order.steps[i], kept + n * kept_bytes);
            ++n;
            continue;
        }
        --n;
        unsigned char* const into = i + 1 == steps ? to : kept + (n - 1) * kept_bytes;
        reduce(taken[n - 1], taken[n], into);
        taken[n - 1] = into;
    }
}

}  // namespace vecmpi::pipeline::node
