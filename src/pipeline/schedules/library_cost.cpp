// SPDX-License-Identifier: BSD-3-Clause
// One row for each collective of the library: it sends whole vectors, each rank's messages one
// after the other.
#include "cost_model.hpp"
#include "library/api/algorithms.hpp"

namespace vecmpi::pipeline {

namespace {

using namespace cost;

using LibraryRule = LibraryCost (*)(const Model& m, double bytes) noexcept;

constexpr double short_reduction{library::library_reduces_by_tree_up_to};
constexpr double short_bcast{library::library_broadcasts_by_tree_up_to};
constexpr double long_message{library::library_exchanges_pairs_from};
constexpr double least_piece{library::library_pieces_of_allgatherv};
constexpr double short_allgather{library::library_allgathers_by_doubling_up_to};
constexpr double packed_alltoall{library::library_packs_alltoall_up_to};
constexpr double alltoall_at_once{library::library_sends_alltoall_at_once_up_to};
constexpr int few_ranks = library::library_broadcasts_by_tree_below_ranks;

// The lowest ranks of the nodes, where these are no power of two.
double leaders_fold(const Model& m, double bytes, bool gets_back) noexcept {
    if (floor_power_of_two(m.nodes) == m.nodes) return 0;
    return m.over_nodes(bytes, bytes, Needs::nothing) +
           (gets_back ? m.over_nodes(bytes, 0, Needs::nothing) : 0);
}

// Reduce-scatter over the leaders by halving, and backwards.
double leaders_halve(const Model& m, double bytes) noexcept {
    const int core = floor_power_of_two(m.nodes);
    return halving(m, core, bytes, true, Needs::nothing, true) +
           halving(m, core, bytes, false, Needs::nothing, true);
}

LibraryCost library_allreduce(const Model& m, double bytes) noexcept {
    const double on_node = binomial(m, m.on_node, m.on_node, bytes, true) +
                           binomial(m, m.on_node, m.on_node, bytes, false);
    const double around = on_node + leaders_fold(m, bytes, true);
    const auto rounds = static_cast<double>(ceil_log2(floor_power_of_two(m.nodes)));
    if (bytes <= short_reduction || m.user_op)
        return {around + rounds * m.over_nodes(bytes, bytes, Needs::nothing), "recursive doubling"};
    return {around + leaders_halve(m, bytes), "reduce-scatter and allgather of a power of two"};
}

LibraryCost library_reduce(const Model& m, double bytes) noexcept {
    if (bytes <= short_reduction || m.user_op)
        return {binomial(m, m.ranks, m.on_node, bytes, true), "binomial"};
    return {binomial(m, m.on_node, m.on_node, bytes, true) + leaders_fold(m, bytes, false) +
                leaders_halve(m, bytes),
            "reduce-scatter and gather of a power of two"};
}

LibraryCost library_reduce_scatter(const Model& m, double bytes) noexcept {
    const int core = floor_power_of_two(m.ranks);
    const double block = bytes / m.ranks;
    if (bytes <= long_message) {
        const bool is_folded = core < m.ranks;
        const double fold = is_folded ? m.over_nodes(bytes, bytes, Needs::nothing) +
                                            m.over_nodes(block, 0, Needs::nothing)
                                      : 0;
        return {fold + halving(m, core, bytes, true, Needs::nothing), "recursive halving"};
    }
    const double inside = m.nodes > 1 ? m.on_node - 1.0 : m.ranks - 1.0;
    return {inside * m.on_a_node(block, block, Needs::nothing) +
                (m.ranks - 1 - inside) * m.all(m.one(block, m.on_node, block), Needs::nothing),
            "pairwise exchange"};
}

LibraryCost library_bcast(const Model& m, double bytes) noexcept {
    if (bytes < short_bcast || m.ranks < few_ranks)
        return {binomial(m, m.ranks, m.on_node, bytes, false), "binomial"};
    // The scatter is a tree: half of the vector, a quarter, ...
    const int levels_of = floor_power_of_two(m.ranks);
    if (bytes < long_message && levels_of == m.ranks)
        return {2 * halving(m, floor_power_of_two(m.nodes), bytes, false, Needs::nothing, true) +
                    binomial(m, m.on_node, m.on_node, bytes, false),
                "scatter and recursive doubling"};
    return {halving(m, levels_of, bytes, false, Needs::nothing, true) +
                ring(m, m.ranks, bytes, false, Needs::nothing),
            "scatter and ring"};
}

// The ring of uneven blocks goes in pieces, each rank's one after the other: as long as the
// smallest block, which we take the others to be, and not shorter than 32 KiB.
double ring_in_pieces(const Model& m, double mean) noexcept {
    const double largest = m.blocks(mean, 1), other = m.blocks(mean, 2) - largest;
    const double piece = std::max(least_piece, other);
    return ring(m, m.ranks, piece * m.ranks, false, Needs::nothing) / (m.ranks - 1.0) *
           (largest / piece + m.ranks - 2.0);
}

LibraryCost library_allgather(const Model& m, double bytes) noexcept {
    const double total = bytes * m.ranks;
    if (total < long_message && floor_power_of_two(m.ranks) == m.ranks)
        return {halving(m, m.ranks, total, false, Needs::nothing), "recursive doubling"};
    if (total < short_allgather)
        return {circulant(m, m.ranks, total, 0, false, Needs::nothing), "Bruck"};
    if (m.largest > 1) return {ring_in_pieces(m, bytes), "ring in pieces"};
    return {ring(m, m.ranks, total, false, Needs::nothing), "ring"};
}

LibraryCost library_alltoall(const Model& m, double bytes) noexcept {
    if (bytes <= packed_alltoall && m.ranks >= library::library_packs_alltoall_from_ranks)
        return {bruck_rounds(m, bytes), "Bruck"};
    if (bytes <= alltoall_at_once) return {all_pairs(m, bytes), "all pairs at once"};
    const double inside = m.nodes > 1 ? m.on_node - 1.0 : m.ranks - 1.0;
    return {inside * m.on_a_node(bytes, 0, Needs::nothing) +
                (m.ranks - 1 - inside) * m.all(m.one(bytes, m.on_node, 0), Needs::nothing),
            "pairwise exchange"};
}

// The nodes' ranks meet, then the lowest of each, who tell the others.
LibraryCost library_barrier(const Model& m, double) noexcept {
    const double over = m.nodes > 1 ? m.over_nodes(0, 0, Needs::nothing) : 0;
    return {dissemination(m, m.on_node, m.on_node) +
                static_cast<double>(ceil_log2(m.nodes)) * over +
                binomial(m, m.on_node, m.on_node, 0, false),
            "dissemination"};
}

LibraryCost library_tree_of_blocks(const Model& m, double bytes) noexcept {
    return {tree_of_blocks(m, bytes), "binomial"};
}

// In the order of enum Collective.
constexpr LibraryRule library_rules[] = {
    library_allreduce, library_reduce,         library_reduce_scatter, library_bcast,
    library_allgather, library_alltoall,       library_barrier,
    nullptr,  // scan and exscan, which no schedule serves
    nullptr,           library_tree_of_blocks, library_tree_of_blocks};
static_assert(sizeof(library_rules) / sizeof(library_rules[0]) == number_of_scheduled_collectives);

}  // namespace

LibraryCost library_cost(const CostFacts& facts, const NetworkConstants& network) noexcept {
    if (facts.ranks < 2) return {0, "nothing"};
    return library_rules[static_cast<size_t>(facts.collective)](Model(facts, network, {1, 1}),
                                                                static_cast<double>(facts.bytes));
}

}  // namespace vecmpi::pipeline
