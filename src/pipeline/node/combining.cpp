// SPDX-License-Identifier: BSD-3-Clause
// Orders of combining, as lists.
#include "combining.hpp"

#include <bit>

#include "pipeline/node/api/butterfly_plan.hpp"

namespace vecmpi::pipeline::node {

namespace {

// A binomial tree of participants 0 to n - 1; leaf(steps, i) takes participant i up.
template <class Leaf>
void add_tree(std::vector<int16_t>& steps, int first, int width, int n, const Leaf& leaf) {
    leaf(steps, first);
    for (int bit = 1; bit < width && first + bit < n; bit <<= 1) {
        add_tree(steps, first + bit, bit, n, leaf);
        steps.push_back(CombiningOrder::combine);
    }
}

// The same with each participant's own value on the right of its children's, where MPICH's Reduce
// has it: what it leaves of two zeros, or of NaNs, depends on it.
template <class Leaf>
void add_reduce_tree(std::vector<int16_t>& steps, int first, int width, int n, const Leaf& leaf) {
    size_t children = 0;
    for (int bit = width / 2; bit > 0; bit /= 2) {
        if (first + bit >= n) continue;
        add_reduce_tree(steps, first + bit, bit, n, leaf);
        ++children;
    }
    leaf(steps, first);
    steps.insert(steps.end(), children, CombiningOrder::combine);
}

// A master of the butterfly with its extra, if it has one.
void take_group_up(std::vector<int16_t>& steps, const ButterflyPlan& plan, int master) {
    const auto participant = static_cast<int16_t>(plan.participant(master));
    const bool has_extra = master < plan.extras();
    if (has_extra) steps.push_back(static_cast<int16_t>(participant - 1));
    steps.push_back(participant);
    if (has_extra) steps.push_back(CombiningOrder::combine);
}

int reversed(int value, int bits) noexcept {
    int result = 0;
    for (int bit = 0; bit < bits; ++bit)
        if ((value >> bit & 1) != 0) result |= 1 << (bits - 1 - bit);
    return result;
}

int next_power_of_two(int n) noexcept {
    return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n)));
}

}  // namespace

// One for each level of the tree; of the group and of a list one more.
size_t values_kept_for(int ranks) noexcept {
    return static_cast<size_t>(std::bit_width(static_cast<unsigned>(ranks))) + 2;
}

CombiningOrder order_of_doubling(int ranks) {
    const ButterflyPlan plan{ranks, 0};
    CombiningOrder order;
    add_tree(order.steps, 0, plan.core(), plan.core(),
             [&](std::vector<int16_t>& steps, int i) { take_group_up(steps, plan, i); });
    return order;
}

CombiningOrder order_of_binomial_tree(int ranks, int root) {
    CombiningOrder order;
    add_reduce_tree(order.steps, 0, next_power_of_two(ranks), ranks,
                    [=](std::vector<int16_t>& steps, int i) {
                        steps.push_back(static_cast<int16_t>((i + root) % ranks));
                    });
    return order;
}

CombiningOrder order_of_halving(int ranks) {
    const ButterflyPlan plan{ranks, 0};
    CombiningOrder order;
    add_tree(order.steps, 0, plan.core(), plan.core(), [&](std::vector<int16_t>& steps, int i) {
        take_group_up(steps, plan, reversed(i, plan.steps()));
    });
    return order;
}

namespace {
// What partners at distances below 2^levels have together, as this rank has it: always the
// partner's on the left.
void add_partners(std::vector<int16_t>& steps, int rank, int levels) {
    if (levels == 0) return steps.push_back(static_cast<int16_t>(rank));
    add_partners(steps, rank ^ 1 << (levels - 1), levels - 1);
    add_partners(steps, rank, levels - 1);
    steps.push_back(CombiningOrder::combine);
}
}  // namespace

CombiningOrder order_of_scan(int rank, bool includes_own) {
    CombiningOrder order;
    for (auto bit = static_cast<int>(std::bit_width(static_cast<unsigned>(rank))); bit-- > 0;)
        if ((rank >> bit & 1) != 0) add_partners(order.steps, rank ^ 1 << bit, bit);
    auto parts = static_cast<size_t>(std::popcount(static_cast<unsigned>(rank)));
    if (includes_own) {
        order.steps.push_back(static_cast<int16_t>(rank));
        ++parts;
    }
    if (parts > 1) order.steps.insert(order.steps.end(), parts - 1, CombiningOrder::combine);
    return order;
}

CombiningOrder order_of_pairwise_exchange(int ranks, int rank) {
    CombiningOrder order;
    order.steps.push_back(static_cast<int16_t>(rank));
    for (int i = 1; i < ranks; ++i) {
        order.steps.push_back(static_cast<int16_t>((rank - i + ranks) % ranks));
        order.steps.push_back(CombiningOrder::combine);
    }
    return order;
}

}  // namespace vecmpi::pipeline::node
