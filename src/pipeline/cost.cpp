// SPDX-License-Identifier: BSD-3-Clause
// One row for each algorithm: its time in closed form. tests/unit/pipeline_cost.cpp compares our
// own with a simulation of their schedules.
#include "cost.hpp"

#include <algorithm>

namespace vecmpi {

namespace {

// What one segment costs.
//   chain  from its beginning to its end, alone
//   held   the part of it during which it holds its lane's memory
//   link   that it keeps the busiest link busy
//   cpu    that it keeps the busiest processor busy
//   fill   from the beginning until that link or processor is busy all the time, and after
struct Cost {
    double chain = 0, held = 0, link = 0, cpu = 0, fill = 0;
};

// One phase after the other.
Cost operator+(const Cost& a, const Cost& b) noexcept {
    return {a.chain + b.chain, a.held + b.held, a.link + b.link, a.cpu + b.cpu,
            std::max(a.fill, b.fill)};
}

// Through with its lane's memory.
Cost released(Cost cost) noexcept {
    cost.held = 0;
    return cost;
}

// A pipeline is as fast as its lanes let it be, or its busiest link, or its busiest processor.
double pipelined(const Cost& cost, const Pipelining& pipelining) noexcept {
    const double segments = pipelining.segments;
    const unsigned groups = (pipelining.segments + pipelining.lanes - 1) / pipelining.lanes;
    const double by_lanes = cost.chain + (groups - 1.0) * cost.held;
    const double by_resource = cost.fill + segments * std::max(cost.link, cost.cpu);
    return std::max(by_lanes, by_resource);
}

int rounds_to_cover(int parts) noexcept {  // ceil(log2)
    int rounds = 0;
    for (int64_t reached = 1; reached < parts; reached *= 2) ++rounds;
    return rounds;
}

int largest_power_of_two(int ranks) noexcept {
    int power = 1;
    while (power <= ranks / 2) power *= 2;
    return power;
}

// ---- rounds

class Model {
  public:
    Model(const CostFacts& facts, const NetworkConstants& network) noexcept
        : net_(network),
          ranks(facts.ranks),
          nodes(std::max(1, facts.nodes)),
          on_node(std::max(1, facts.most_ranks_on_a_node)),
          uniform(facts.uniform),
          user_op(facts.user_op) {}

    // Every rank sends and receives one message; `crossing` of them leave each node.
    Cost round(double bytes, int crossing, double reduced) const noexcept {
        if (crossing == 0 || nodes == 1) return round_on_node(bytes, reduced);
        const double link = crossing * bytes / net_.bytes_per_us;
        const double cpu = 2 * net_.overhead_us + reduce(reduced);
        const double chain = cpu + ways(bytes) * net_.latency_us + link;
        return {chain, chain, link, cpu, chain - std::max(link, cpu)};
    }
    Cost round_on_node(double bytes, double reduced) const noexcept {
        const double link = bytes / net_.node_bytes_per_us;
        const double cpu = 2 * net_.node_overhead_us + reduce(reduced);
        const double chain = cpu + ways(bytes) * net_.node_latency_us + link;
        return {chain, chain, 0, std::max(cpu, link), chain - std::max(link, cpu)};
    }
    double reduce(double bytes) const noexcept { return bytes / net_.reduce_bytes_per_us; }
    double overhead() const noexcept {
        return nodes > 1 ? net_.overhead_us : net_.node_overhead_us;
    }
    double link(double bytes) const noexcept {
        return bytes / (nodes > 1 ? net_.bytes_per_us : net_.node_bytes_per_us);
    }
    // Ranks of a node whose partner at this distance is on another.
    int crossing(int64_t distance) const noexcept {
        return nodes == 1 ? 0 : static_cast<int>(std::min<int64_t>(distance, on_node));
    }

  private:
    double ways(double bytes) const noexcept { return bytes > net_.rendezvous_bytes ? 3 : 1; }
    NetworkConstants net_;

  public:
    int ranks, nodes, on_node;
    bool uniform, user_op;
};

Cost times(double n, const Cost& cost) noexcept {
    return {n * cost.chain, n * cost.held, n * cost.link, n * cost.cpu, cost.fill};
}

// ---- phases: `bytes` are the vector's, all that one segment has

// Patarasuk, Yuan, JPDC 69, 2009: p-1 rounds of n/p bytes. Ranks of a node are neighbours, so one
// message leaves it in each round; a block's way leads over each of the edges once.
Cost ring(const Model& m, int ranks, double bytes, bool reduces) noexcept {
    const double block = bytes / ranks, reduced = reduces ? block : 0;
    const int between = m.nodes > 1 ? std::min(m.nodes, ranks) : 0;
    const Cost over = m.round(block, 1, reduced), inside = m.round_on_node(block, reduced);
    Cost sum = times(ranks - 1, m.nodes > 1 ? over : inside);
    sum.chain = sum.held =
        (ranks - 1.0) / ranks * (between * over.chain + (ranks - between) * inside.chain);
    sum.chain = sum.held =
        std::max(sum.chain, (ranks - 1) * std::max(over.link, over.cpu) * (between > 0 ? 1 : 0));
    return sum;
}

// Träff, arXiv 2410.14234: ceil(log2 p) rounds, of half of the vector, a quarter, ...
Cost circulant(const Model& m, int ranks, double bytes, int sharing, bool reduces) noexcept {
    Cost sum;
    for (int reach = ranks; reach > 1;) {
        const int skip = (reach + 1) / 2, number = reach - skip;
        const double part = bytes * number / ranks;
        const int crossing = sharing > 0 ? sharing : m.crossing(skip);
        sum = sum + m.round(part, crossing, reduces ? part : 0);
        reach = skip;
    }
    return sum;
}

// Thakur et al., IJHPCA 19, 2005: the ranks beyond the largest power of two hand over their vector
// and get the result back.
Cost fold(const Model& m, double bytes, bool back) noexcept {
    const bool is_over_nodes = m.on_node == 1;
    return m.round(bytes, is_over_nodes ? 1 : 0, back ? 0 : bytes);
}

Cost doubling_allreduce_cost(const Model& m, double bytes) noexcept {
    const int core = largest_power_of_two(m.ranks);
    Cost sum;
    for (int distance = core / 2; distance > 0; distance /= 2)
        sum = sum + m.round(bytes, distance < m.on_node ? 0 : m.on_node, bytes);
    if (core < m.ranks) sum = fold(m, bytes, false) + sum + released(fold(m, bytes, true));
    return sum;
}

Cost halving_phase(const Model& m, int core, double bytes, bool reduces) noexcept {
    Cost sum;
    for (int distance = core / 2; distance > 0; distance /= 2) {
        const double part = bytes * distance / core;
        sum = sum + m.round(part, distance < m.on_node ? 0 : m.on_node, reduces ? part : 0);
    }
    return sum;
}

Cost halving_allreduce_cost(const Model& m, double bytes) noexcept {
    const int core = largest_power_of_two(m.ranks);
    Cost sum = halving_phase(m, core, bytes, true) + released(halving_phase(m, core, bytes, false));
    if (core < m.ranks) sum = fold(m, bytes, false) + sum + released(fold(m, bytes, true));
    return sum;
}

// A tree of ceil(log2) levels over the nodes, then over the ranks of each. The root's link carries
// a vector for each level over the nodes.
Cost binomial(const Model& m, int nodes, int on_node, double bytes, bool reduces) noexcept {
    const double reduced = reduces ? bytes : 0;
    return times(rounds_to_cover(nodes), m.round(bytes, nodes > 1 ? 1 : 0, reduced)) +
           times(rounds_to_cover(on_node), m.round_on_node(bytes, reduced));
}

// From rank to rank: each receives and sends the vector once.
Cost chain(const Model& m, double bytes, bool reduces) noexcept {
    const double reduced = reduces ? bytes : 0;
    const Cost over = m.round(bytes, 1, reduced), inside = m.round_on_node(bytes, reduced);
    const Cost busy = m.nodes > 1 ? over : inside;
    Cost sum = busy;
    const double hops_over = m.nodes - 1.0, hops_inside = m.ranks - 1.0 - hops_over;
    sum.chain = hops_over * over.chain + hops_inside * inside.chain;
    sum.held = reduces ? busy.chain : 0;
    sum.fill = sum.chain - std::max(busy.link, busy.cpu);
    return sum;
}

// Every other rank's block between it and the root, whose link carries those of other nodes.
Cost to_or_from_root(const Model& m, double bytes) noexcept {
    const double block = bytes / m.ranks;
    const Cost one = m.round(block, 1, 0);
    Cost sum;
    sum.link = m.nodes > 1 ? m.link(block) * (m.ranks - m.on_node) : 0;
    sum.cpu = m.overhead() * (m.ranks - 1);
    const double busy = std::max(sum.link, sum.cpu);
    sum.chain = one.chain + busy - std::max(m.link(block), m.overhead());
    sum.fill = sum.chain - busy;
    return sum;
}

// ---- algorithms

Cost ring_allreduce(const Model& m, double bytes) noexcept {
    return ring(m, m.ranks, bytes, true) + released(ring(m, m.ranks, bytes, false));
}
Cost rabenseifner_allreduce(const Model& m, double bytes) noexcept {
    return circulant(m, m.ranks, bytes, 0, true) + released(circulant(m, m.ranks, bytes, 0, false));
}
Cost hierarchical_allreduce(const Model& m, double bytes) noexcept {
    const int r = m.on_node;
    if (m.uniform) {
        const double slice = bytes / r;
        return times(r - 1, m.round_on_node(slice, slice)) + circulant(m, m.nodes, slice, r, true) +
               released(circulant(m, m.nodes, slice, r, false) +
                        times(r - 1, m.round_on_node(slice, 0)));
    }
    return binomial(m, 1, r, bytes, true) + circulant(m, m.nodes, bytes, 1, true) +
           released(circulant(m, m.nodes, bytes, 1, false) + binomial(m, 1, r, bytes, false));
}
Cost chain_reduce_cost(const Model& m, double bytes) noexcept { return chain(m, bytes, true); }
Cost binomial_reduce_cost(const Model& m, double bytes) noexcept {
    return binomial(m, m.nodes, m.on_node, bytes, true);
}
Cost rabenseifner_reduce_cost(const Model& m, double bytes) noexcept {
    return circulant(m, m.ranks, bytes, 0, true) + to_or_from_root(m, bytes);
}
Cost ring_reduce_scatter_cost(const Model& m, double bytes) noexcept {
    return ring(m, m.ranks, bytes, true);
}
Cost circulant_reduce_scatter_cost(const Model& m, double bytes) noexcept {
    return circulant(m, m.ranks, bytes, 0, true);
}
Cost chain_bcast_cost(const Model& m, double bytes) noexcept { return chain(m, bytes, false); }
Cost binomial_bcast_cost(const Model& m, double bytes) noexcept {
    return released(binomial(m, m.nodes, m.on_node, bytes, false));
}
Cost scatter_allgather_cost(const Model& m, double bytes) noexcept {
    return to_or_from_root(m, bytes) + released(ring(m, m.ranks, bytes, false));
}
Cost ring_allgather_cost(const Model& m, double bytes) noexcept {
    return released(ring(m, m.ranks, bytes * m.ranks, false));
}
Cost bruck_cost(const Model& m, double bytes) noexcept {
    return released(circulant(m, m.ranks, bytes * m.ranks, 0, false));
}

enum class Cut : uint8_t { once, by_node, by_rank };  // how often a segment is cut for its messages

struct Row {
    Collective collective;
    CollectivePath algorithm;
    Cost (*cost)(const Model& model, double bytes) noexcept;
    Cut cut;
};
constexpr Row rows[] = {
    {Collective::allreduce, CollectivePath::ring, ring_allreduce, Cut::by_rank},
    {Collective::allreduce, CollectivePath::rabenseifner, rabenseifner_allreduce, Cut::once},
    {Collective::allreduce, CollectivePath::recursive_doubling, doubling_allreduce_cost, Cut::once},
    {Collective::allreduce, CollectivePath::recursive_halving, halving_allreduce_cost, Cut::once},
    {Collective::allreduce, CollectivePath::hierarchical, hierarchical_allreduce, Cut::by_node},
    {Collective::reduce, CollectivePath::chain, chain_reduce_cost, Cut::once},
    {Collective::reduce, CollectivePath::binomial, binomial_reduce_cost, Cut::once},
    {Collective::reduce, CollectivePath::rabenseifner, rabenseifner_reduce_cost, Cut::once},
    {Collective::reduce_scatter, CollectivePath::ring, ring_reduce_scatter_cost, Cut::by_rank},
    {Collective::reduce_scatter, CollectivePath::recursive_halving, circulant_reduce_scatter_cost,
     Cut::once},
    {Collective::bcast, CollectivePath::chain, chain_bcast_cost, Cut::once},
    {Collective::bcast, CollectivePath::binomial, binomial_bcast_cost, Cut::once},
    {Collective::bcast, CollectivePath::scatter_allgather, scatter_allgather_cost, Cut::by_rank},
    {Collective::allgather, CollectivePath::ring, ring_allgather_cost, Cut::once},
    {Collective::allgather, CollectivePath::bruck, bruck_cost, Cut::once},
};

const Row& row_of(Collective collective, CollectivePath algorithm) noexcept {
    for (const Row& row : rows)
        if (row.collective == collective && row.algorithm == algorithm) return row;
    return rows[0];
}

// ---- the library

using LibraryRule = LibraryCost (*)(const Model& m, double bytes);

// MPICH halves once over the largest power of two; the ranks beyond it fold.
double halving_us(const Model& m, int ranks, double bytes, bool shared) noexcept {
    const int core = largest_power_of_two(ranks);
    double us = 0;
    for (int distance = core / 2; distance > 0; distance /= 2) {
        const double part = bytes * distance / core;
        const int crossing = !shared ? 1 : distance < m.on_node ? 0 : m.on_node;
        us += m.round(part, crossing, part).chain;
    }
    return us;
}

double gathering_us(const Model& m, int ranks, double bytes, bool shared) noexcept {
    const int core = largest_power_of_two(ranks);
    double us = 0;
    for (int distance = core / 2; distance > 0; distance /= 2) {
        const int crossing = !shared ? 1 : distance < m.on_node ? 0 : m.on_node;
        us += m.round(bytes * distance / core, crossing, 0).chain;
    }
    return us;
}

constexpr double short_reduction = 2048;  // CVAR_ALLREDUCE_SHORT_MSG_SIZE, CVAR_REDUCE_...

// Among the nodes' lowest ranks: what comes after and before is done on the node.
LibraryCost library_allreduce_cost(const Model& m, double bytes) {
    const double reduce_on_node = binomial(m, 1, m.on_node, bytes, true).chain;
    const double bcast_on_node = binomial(m, 1, m.on_node, bytes, false).chain;
    const int leaders = m.nodes, core = largest_power_of_two(leaders);
    const Cost whole = m.round(bytes, 1, bytes);
    const double folds = core < leaders ? whole.chain + m.round(bytes, 1, 0).chain : 0;
    const double around = folds + reduce_on_node + bcast_on_node;
    if (bytes <= short_reduction || m.user_op)
        return {around + rounds_to_cover(core) * whole.chain, "recursive doubling"};
    return {around + halving_us(m, leaders, bytes, false) + gathering_us(m, leaders, bytes, false),
            "Rabenseifner's, folded"};
}

LibraryCost library_reduce_cost(const Model& m, double bytes) {
    const int leaders = m.nodes, core = largest_power_of_two(leaders);
    if (bytes <= short_reduction || m.user_op)
        return {binomial(m, m.nodes, m.on_node, bytes, true).chain, "binomial"};
    const double folded = core < leaders ? m.round(bytes, 1, bytes).chain : 0;
    return {binomial(m, 1, m.on_node, bytes, true).chain + folded +
                halving_us(m, leaders, bytes, false) + gathering_us(m, leaders, bytes, false),
            "reduce-scatter, gather"};
}

LibraryCost library_reduce_scatter_cost(const Model& m, double bytes) {
    const int p = m.ranks, core = largest_power_of_two(p);
    if (bytes <= 524288) {
        const double folds =
            core < p ? m.round(bytes, 1, bytes).chain + m.round(bytes / p, 1, 0).chain : 0;
        return {folds + halving_us(m, p, bytes, true), "recursive halving"};
    }
    const double block = bytes / p;
    const double inside = std::min(m.on_node, p) - 1.0;
    return {inside * m.round_on_node(block, block).chain +
                (p - 1 - inside) * m.round(block, m.on_node, block).chain,
            "pairwise exchange"};
}

LibraryCost library_bcast_cost(const Model& m, double bytes) {
    const int p = m.ranks;
    const bool is_short = bytes < 12288 || p < 8, is_power = largest_power_of_two(p) == p;
    if (is_short) return {binomial(m, m.nodes, m.on_node, bytes, false).chain, "binomial"};
    if (bytes < 524288 && is_power)
        return {2 * gathering_us(m, m.nodes, bytes, false) +
                    2 * gathering_us({{Collective::bcast, 0, m.on_node, 1, m.on_node}, {}},
                                     m.on_node, bytes, false),
                "scatter, recursive doubling allgather"};
    return {gathering_us(m, p, bytes, false) + ring(m, p, bytes, false).chain,
            "scatter, ring allgather"};
}

LibraryCost library_allgather_cost(const Model& m, double bytes) {
    const int p = m.ranks;
    const double total = bytes * p;
    if (total < 524288 && largest_power_of_two(p) == p)
        return {gathering_us(m, p, total, true), "recursive doubling"};
    if (total < 81920) return {circulant(m, p, total, 0, false).chain, "Bruck"};
    return {ring(m, p, total, false).chain, "ring"};
}

// In the order of enum Collective.
constexpr LibraryRule library_rules[] = {library_allreduce_cost, library_reduce_cost,
                                         library_reduce_scatter_cost, library_bcast_cost,
                                         library_allgather_cost};
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
    const Cost cost = row.cost(Model(facts, network), static_cast<double>(facts.bytes) / segments);
    return pipelined(cost, {std::max(1u, pipelining.segments), std::max(1u, pipelining.lanes)});
}

LibraryCost library_cost(const CostFacts& facts, const NetworkConstants& network) noexcept {
    if (facts.ranks < 2) return {0, "nothing"};
    return library_rules[static_cast<size_t>(facts.collective)](Model(facts, network),
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

}  // namespace vecmpi
