// SPDX-License-Identifier: BSD-3-Clause
// One row for each algorithm: its time in closed form. tests/unit/pipeline_cost.cpp compares our
// own with a simulation of their schedules.
#include "cost.hpp"

#include <algorithm>

namespace vecmpi::pipeline {

namespace {

enum class Needs : bool { lane, nothing };  // of memory, besides the result's

int64_t ceil_log2(int64_t number) noexcept {
    int64_t rounds = 0;
    for (int64_t reached = 1; reached < number; reached *= 2) ++rounds;
    return rounds;
}

int floor_power_of_two(int number) noexcept {
    int power = 1;
    while (power <= number / 2) power *= 2;
    return power;
}

// ---- rounds of all segments
// -----------------------------------------------------------------------

// What a round of one segment takes alone, and how long it keeps what all segments share busy.
struct Round {
    double chain, busy;
};

class Model {
  public:
    Model(const CostFacts& facts, const NetworkConstants& network, Pipelining pipelining) noexcept
        : ranks(facts.ranks),
          nodes(std::max(1, facts.nodes)),
          on_node(std::max(1, facts.most_ranks_on_a_node)),
          uniform(facts.uniform),
          user_op(facts.user_op),
          segments(std::max(1u, pipelining.segments)),
          // NOLINTNEXTLINE(bugprone-integer-division): whole groups
          groups((std::max(1u, pipelining.segments) - 1) / std::max(1u, pipelining.lanes) + 1),
          net_(network) {}

    // Each rank sends and receives `bytes` in so many messages, `crossing` of the ranks of a node
    // over its link, and reduces.
    Round one(double bytes, double crossing, double reduced, double messages = 1) const noexcept {
        const bool is_over = crossing > 0 && nodes > 1;
        const double overhead = is_over ? net_.overhead_us : net_.node_overhead_us;
        const double latency = is_over ? net_.latency_us : net_.node_latency_us;
        const double wire =
            is_over ? crossing * bytes / net_.bytes_per_us : bytes / net_.node_bytes_per_us;
        const double ways = bytes / messages > net_.rendezvous_bytes ? 3 : 1;
        const double cpu = 2 * overhead * messages + reduced / net_.reduce_bytes_per_us;
        return {cpu + ways * latency + wire, std::max(cpu, wire)};
    }
    // Segments that share memory follow each other; all share link and processor. Rounds of
    // different kinds overlap little: lanes march in step.
    double all(const Round& round, Needs memory) const noexcept {
        const double turns = memory == Needs::lane ? groups : 1;
        return std::max(turns * round.chain, segments * round.busy);
    }
    // The first round of a phase: the resources idle until the first segment is there.
    double first(const Round& round, Needs memory) const noexcept {
        return std::max(all(round, memory), round.chain + (segments - 1) * round.busy);
    }
    double over_nodes(double bytes, double reduced, Needs memory) const noexcept {
        return all(one(bytes, 1, reduced), memory);
    }
    double on_a_node(double bytes, double reduced, Needs memory) const noexcept {
        return all(one(bytes, 0, reduced), memory);
    }
    double overhead() const noexcept {
        return nodes > 1 ? net_.overhead_us : net_.node_overhead_us;
    }
    double wire(double bytes) const noexcept {
        return bytes / (nodes > 1 ? net_.bytes_per_us : net_.node_bytes_per_us);
    }
    // Ranks of a node whose partner is on another, at a distance between neighbours.
    int crossing(int64_t distance) const noexcept {
        return nodes == 1 ? 0 : static_cast<int>(std::min<int64_t>(distance, on_node));
    }
    // The same with partners by exclusive or, of the ranks of the largest power of two.
    int crossing_of_pairs(int64_t distance) const noexcept {
        const int folded = ranks - floor_power_of_two(ranks);
        const bool is_aligned = floor_power_of_two(on_node) == on_node && folded % on_node == 0;
        if (is_aligned && distance < on_node) return 0;
        return crossing(distance);
    }

    int ranks, nodes, on_node;
    bool uniform, user_op;
    double segments, groups;

  private:
    NetworkConstants net_;
};

// ---- phases: `bytes` are the vector's, all that one segment has
// --------------------------------------

// Patarasuk, Yuan, JPDC 69, 2009: p-1 rounds of n/p bytes. Ranks of a node are neighbours, so one
// message leaves it in each round; the slowest rank sets the pace, or the way of a block around.
double ring(const Model& m, int ranks, double bytes, bool reduces, Needs memory) noexcept {
    const double block = bytes / ranks, reduced = reduces ? block : 0;
    const Round over = m.one(block, 1, reduced), inside = m.one(block, 0, reduced);
    const double edges = m.nodes > 1 ? m.nodes : 0;
    Round mean = inside;
    mean.chain = (edges * over.chain + (ranks - edges) * inside.chain) / ranks;
    // With neighbours on the node a rank talks to another node on one side only.
    if (m.nodes > 1)
        mean.busy =
            m.on_node == 1 ? over.busy : std::max(m.wire(block), (over.busy + inside.busy) / 2);
    mean.chain = std::max(mean.chain, mean.busy);
    return m.first(mean, memory) + (ranks - 2.0) * m.all(mean, memory);
}

// Träff, arXiv 2410.14234: ceil(log2 p) rounds, of half of the vector, a quarter, ... What a round
// sends may have come two rounds before, if p is no power of two. Blocks that are cut lie apart:
// each is a message of its own.
double circulant(const Model& m, int ranks, double bytes, int sharing, bool reduces, Needs memory,
                 bool blocks_are_cut = false) noexcept {
    constexpr int most_rounds = 64;
    struct {
        int64_t number;
        double done;
    } rounds[most_rounds];
    int k = 0;
    double free_at = 0, last = 0;
    for (int64_t reach = ranks; reach > 1 && k < most_rounds; ++k) {
        const int64_t skip = (reach + 1) / 2, number = reach - skip;
        double ready = 0;
        for (int j = 0; j < k; ++j)
            if (rounds[j].number > skip) ready = rounds[j].done;
        const double part = bytes * static_cast<double>(number) / ranks;
        const int crossing = sharing > 0 ? sharing : m.crossing(skip);
        const double messages = blocks_are_cut ? static_cast<double>(number) : 1;
        Round round = m.one(part, crossing, reduces ? part : 0, messages);
        // All skips that are shorter than a node lead together over one border at most.
        if (sharing == 0 && skip < m.on_node && reach <= m.on_node && m.nodes > 1)
            round.chain = std::max(round.busy, m.one(part, 0, reduces ? part : 0, messages).chain);
        const double begins = std::max(ready, free_at);
        free_at = begins + m.segments * round.busy;
        rounds[k] = {number, begins + (k == 0 ? m.first(round, memory) : m.all(round, memory))};
        last = std::max(last, rounds[k].done);
        reach = skip;
    }
    return last;
}

// Thakur et al., IJHPCA 19, 2005: ranks beyond the largest power of two hand over their vector, and
// get the result back. One way is used by the first, the other by the second.
double folds(const Model& m, double bytes) noexcept {
    if (floor_power_of_two(m.ranks) == m.ranks) return 0;
    // Pairs of neighbours: the first that lies on two nodes begins with rank on_node - 1.
    const int folded = m.ranks - floor_power_of_two(m.ranks);
    const int crossing = m.on_node % 2 == 1 && (m.on_node - 1) / 2 < folded ? 1 : 0;
    return m.all(m.one(bytes, crossing, bytes), Needs::lane) + m.one(bytes, crossing, 0).chain;
}

double doubling_allreduce_us(const Model& m, double bytes) noexcept {
    double us = folds(m, bytes);
    for (int distance = floor_power_of_two(m.ranks) / 2; distance > 0; distance /= 2)
        us += distance == 1
                  ? m.first(m.one(bytes, m.crossing_of_pairs(1), bytes), Needs::lane)
                  : m.all(m.one(bytes, m.crossing_of_pairs(distance), bytes), Needs::lane);
    return us;
}

// Of `core` ranks, a power of two. are_leaders: one of each node.
double halving(const Model& m, int core, double bytes, bool reduces, Needs memory,
               bool are_leaders = false) noexcept {
    double us = 0;
    for (int distance = core / 2; distance > 0; distance /= 2) {
        const double part = bytes * distance / core;
        const int crossing = are_leaders ? 1 : m.crossing_of_pairs(distance);
        const Round round = m.one(part, crossing, reduces ? part : 0);
        us += distance == 1 ? m.first(round, memory) : m.all(round, memory);
    }
    return us;
}

double halving_allreduce_us(const Model& m, double bytes) noexcept {
    const int core = floor_power_of_two(m.ranks);
    return folds(m, bytes) + halving(m, core, bytes, true, Needs::lane) +
           halving(m, core, bytes, false, Needs::nothing);
}

// A tree: the root has a child on each of ceil(log2 p) levels, the uppermost on other nodes. Where
// p is no power of two nobody is as deep as that, but the root still serves each of its children.
double binomial(const Model& m, int ranks, int on_node, double bytes, bool reduces) noexcept {
    const auto all_levels = static_cast<double>(ceil_log2(ranks));
    const double inside =
        ranks <= on_node ? all_levels : static_cast<double>(ceil_log2(floor_power_of_two(on_node)));
    const double over = all_levels - inside, reduced = reduces ? bytes : 0;
    const bool is_full = floor_power_of_two(ranks) == ranks;
    const auto levels = [&](double number, int crossing, bool are_full) noexcept {
        const Round round = m.one(bytes, crossing, reduced);
        // The root only sends, or only receives.
        const double overhead = m.one(0, crossing, 0).busy;
        const double busy = std::max(m.one(bytes, crossing, 0).busy - overhead / 2,
                                     m.one(0, crossing, reduced).busy - overhead / 2);
        const double level = m.all({round.chain, std::min(round.busy, busy)}, Needs::nothing);
        const double begins =
            are_full ? std::max(level, round.chain + (m.segments - 1) * busy) : m.segments * busy;
        return (number - 1) * level + begins;
    };
    const bool has_over = over > 0;
    return (has_over ? levels(over, 1, is_full) : 0) +
           (inside > 0 ? levels(inside, 0, is_full || has_over) : 0);
}

// From rank to rank: each receives and sends the vector once.
double chain(const Model& m, double bytes, bool reduces) noexcept {
    const double reduced = reduces ? bytes : 0;
    const Round over = m.one(bytes, 1, reduced), inside = m.one(bytes, 0, reduced);
    // The reduction ends where the root is, and passes its node twice.
    const double hops_over = m.nodes - 1.0 + (reduces && m.nodes > 1 && m.on_node > 1 ? 1.0 : 0.0);
    const double way = hops_over * over.chain + (m.ranks - 1 - hops_over) * inside.chain;
    const Round& slowest = m.nodes > 1 ? over : inside;
    const double turns = reduces && m.ranks > 2 ? m.groups : 1;
    return way + std::max((turns - 1) * slowest.chain, (m.segments - 1) * slowest.busy);
}

// Every other rank's block between it and the root, whose link carries those of other nodes.
double with_root(const Model& m, double bytes) noexcept {
    const double block = bytes / m.ranks;
    const double wire = m.wire(block) * (m.nodes > 1 ? m.ranks - m.on_node : m.ranks - 1);
    const double busy = std::max(wire, m.overhead() * (m.ranks - 1));
    return m.one(block, 1, 0).chain + m.segments * busy - std::max(m.wire(block), m.overhead());
}

// ---- algorithms
// -----------------------------------------------------------------------------------

double ring_allreduce_us(const Model& m, double bytes) noexcept {
    return ring(m, m.ranks, bytes, true, Needs::lane) +
           ring(m, m.ranks, bytes, false, Needs::nothing);
}
double rabenseifner_allreduce_us(const Model& m, double bytes) noexcept {
    return circulant(m, m.ranks, bytes, 0, true, Needs::lane) +
           circulant(m, m.ranks, bytes, 0, false, Needs::nothing);
}
double hierarchical_us(const Model& m, double bytes) noexcept {
    const int r = m.on_node;
    if (!m.uniform)
        return binomial(m, r, r, bytes, true) + circulant(m, m.nodes, bytes, 1, true, Needs::lane) +
               circulant(m, m.nodes, bytes, 1, false, Needs::nothing) +
               binomial(m, r, r, bytes, false);
    const double slice = bytes / r;
    return (r - 1) * m.on_a_node(slice, slice, Needs::lane) +
           circulant(m, m.nodes, slice, r, true, Needs::lane) +
           circulant(m, m.nodes, slice, r, false, Needs::nothing) +
           (r - 1) * m.on_a_node(slice, 0, Needs::nothing);
}
double chain_reduce_us(const Model& m, double bytes) noexcept { return chain(m, bytes, true); }
double binomial_reduce_us(const Model& m, double bytes) noexcept {
    return binomial(m, m.ranks, m.on_node, bytes, true);
}
double rabenseifner_reduce_us(const Model& m, double bytes) noexcept {
    return circulant(m, m.ranks, bytes, 0, true, Needs::lane) + with_root(m, bytes);
}
double ring_reduce_scatter_us(const Model& m, double bytes) noexcept {
    return ring(m, m.ranks, bytes, true, Needs::lane);
}
double circulant_reduce_scatter_us(const Model& m, double bytes) noexcept {
    return circulant(m, m.ranks, bytes, 0, true, Needs::lane, m.segments > 1);
}
double chain_bcast_us(const Model& m, double bytes) noexcept { return chain(m, bytes, false); }
double binomial_bcast_us(const Model& m, double bytes) noexcept {
    return binomial(m, m.ranks, m.on_node, bytes, false);
}
double scatter_allgather_us(const Model& m, double bytes) noexcept {
    return with_root(m, bytes) + ring(m, m.ranks, bytes, false, Needs::nothing);
}
double ring_allgather_us(const Model& m, double bytes) noexcept {
    return ring(m, m.ranks, bytes * m.ranks, false, Needs::nothing);
}
double bruck_us(const Model& m, double bytes) noexcept {
    return circulant(m, m.ranks, bytes * m.ranks, 0, false, Needs::nothing, m.segments > 1);
}

enum class Cut : uint8_t { once, by_node, by_rank };  // how often a segment is cut for its messages

struct Row {
    Collective collective;
    CollectivePath algorithm;
    double (*us)(const Model& model, double bytes) noexcept;
    Cut cut;
};
constexpr Row rows[] = {
    {Collective::allreduce, CollectivePath::ring, ring_allreduce_us, Cut::by_rank},
    {Collective::allreduce, CollectivePath::rabenseifner, rabenseifner_allreduce_us, Cut::once},
    {Collective::allreduce, CollectivePath::recursive_doubling, doubling_allreduce_us, Cut::once},
    {Collective::allreduce, CollectivePath::recursive_halving, halving_allreduce_us, Cut::once},
    {Collective::allreduce, CollectivePath::hierarchical, hierarchical_us, Cut::by_node},
    {Collective::reduce, CollectivePath::chain, chain_reduce_us, Cut::once},
    {Collective::reduce, CollectivePath::binomial, binomial_reduce_us, Cut::once},
    {Collective::reduce, CollectivePath::rabenseifner, rabenseifner_reduce_us, Cut::once},
    {Collective::reduce_scatter, CollectivePath::ring, ring_reduce_scatter_us, Cut::by_rank},
    {Collective::reduce_scatter, CollectivePath::recursive_halving, circulant_reduce_scatter_us,
     Cut::once},
    {Collective::bcast, CollectivePath::chain, chain_bcast_us, Cut::once},
    {Collective::bcast, CollectivePath::binomial, binomial_bcast_us, Cut::once},
    {Collective::bcast, CollectivePath::scatter_allgather, scatter_allgather_us, Cut::by_rank},
    {Collective::allgather, CollectivePath::ring, ring_allgather_us, Cut::once},
    {Collective::allgather, CollectivePath::bruck, bruck_us, Cut::once},
};

const Row& row_of(Collective collective, CollectivePath algorithm) noexcept {
    for (const Row& row : rows)
        if (row.collective == collective && row.algorithm == algorithm) return row;
    return rows[0];
}

// ---- the library: whole vectors, each rank's messages one after the other
// ----------------------------

using LibraryRule = LibraryCost (*)(const Model& m, double bytes) noexcept;

constexpr double short_reduction{library::library_reduces_by_tree_up_to};
constexpr double short_bcast{library::library_broadcasts_by_tree_up_to};
constexpr double long_message{library::library_exchanges_pairs_from};
constexpr double short_allgather{library::library_allgathers_by_doubling_up_to};
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

LibraryCost library_allgather(const Model& m, double bytes) noexcept {
    const double total = bytes * m.ranks;
    if (total < long_message && floor_power_of_two(m.ranks) == m.ranks)
        return {halving(m, m.ranks, total, false, Needs::nothing), "recursive doubling"};
    if (total < short_allgather)
        return {circulant(m, m.ranks, total, 0, false, Needs::nothing), "Bruck"};
    return {ring(m, m.ranks, total, false, Needs::nothing), "ring"};
}

// In the order of enum Collective.
constexpr LibraryRule library_rules[] = {library_allreduce, library_reduce, library_reduce_scatter,
                                         library_bcast, library_allgather};
static_assert(sizeof(library_rules) / sizeof(library_rules[0]) == number_of_collectives);

}  // namespace

NetworkConstants network_constants(const NetworkSetting& setting) noexcept {
    NetworkConstants network;
    if (setting.latency_ns >= 0)
        network.latency_us = static_cast<double>(setting.latency_ns) / 1000;
    if (setting.bytes_per_s > 0)
        network.bytes_per_us = static_cast<double>(setting.bytes_per_s) / 1000000;
    if (setting.overhead_ns >= 0)
        network.overhead_us = static_cast<double>(setting.overhead_ns) / 1000;
    return network;
}

double predicted_us(CollectivePath algorithm, const CostFacts& facts, const Pipelining& pipelining,
                    const NetworkConstants& network) noexcept {
    if (facts.ranks < 2) return 0;
    const Row& row = row_of(facts.collective, algorithm);
    const double segments = std::max(1u, pipelining.segments);
    return row.us(Model(facts, network, pipelining), static_cast<double>(facts.bytes) / segments);
}

LibraryCost library_cost(const CostFacts& facts, const NetworkConstants& network) noexcept {
    if (facts.ranks < 2) return {0, "nothing"};
    return library_rules[static_cast<size_t>(facts.collective)](Model(facts, network, {1, 1}),
                                                                static_cast<double>(facts.bytes));
}

int64_t blocks_of_segment(CollectivePath algorithm, const CostFacts& facts) noexcept {
    switch (row_of(facts.collective, algorithm).cut) {
        case Cut::by_rank:
            return facts.ranks;
        case Cut::by_node:
            return facts.most_ranks_on_a_node;
        case Cut::once:
            break;
    }
    return 1;
}

}  // namespace vecmpi::pipeline
