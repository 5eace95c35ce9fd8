// SPDX-License-Identifier: BSD-3-Clause
// One row for each algorithm of ours: its time in closed form. tests/unit/pipeline_cost.cpp
// compares these with a simulation of the schedules.
#include "cost.hpp"

#include <algorithm>

#include "cost_model.hpp"

namespace vecmpi::pipeline {

namespace {

using namespace cost;

double doubling_allreduce_us(const Model& m, double bytes) noexcept {
    double us = folds(m, bytes);
    for (int distance = floor_power_of_two(m.ranks) / 2; distance > 0; distance /= 2)
        us += distance == 1
                  ? m.first(m.one(bytes, m.crossing_of_pairs(1), bytes), Needs::lane)
                  : m.all(m.one(bytes, m.crossing_of_pairs(distance), bytes), Needs::lane);
    return us;
}
double halving_allreduce_us(const Model& m, double bytes) noexcept {
    const int core = floor_power_of_two(m.ranks);
    return folds(m, bytes) + halving(m, core, bytes, true, Needs::lane) +
           halving(m, core, bytes, false, Needs::nothing);
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

enum class Cut : uint8_t { once, by_node, by_rank };  // how often a segment is cut for its messages

struct Row {
    Collective collective;
    CollectivePath algorithm;
    Cut cut;
    double (*us)(const Model& model, double bytes) noexcept;
};
constexpr Row rows[] = {
    {Collective::allreduce, CollectivePath::ring, Cut::by_rank,
     [](const Model& m, double bytes) noexcept {
         return ring(m, m.ranks, bytes, true, Needs::lane) +
                ring(m, m.ranks, bytes, false, Needs::nothing);
     }},
    {Collective::allreduce, CollectivePath::rabenseifner, Cut::once,
     [](const Model& m, double bytes) noexcept {
         return circulant(m, m.ranks, bytes, 0, true, Needs::lane) +
                circulant(m, m.ranks, bytes, 0, false, Needs::nothing);
     }},
    {Collective::allreduce, CollectivePath::recursive_doubling, Cut::once, doubling_allreduce_us},
    {Collective::allreduce, CollectivePath::recursive_halving, Cut::once, halving_allreduce_us},
    {Collective::allreduce, CollectivePath::hierarchical, Cut::by_node, hierarchical_us},
    {Collective::reduce, CollectivePath::chain, Cut::once,
     [](const Model& m, double bytes) noexcept { return chain(m, bytes, true); }},
    {Collective::reduce, CollectivePath::binomial, Cut::once,
     [](const Model& m, double bytes) noexcept {
         return binomial(m, m.ranks, m.on_node, bytes, true);
     }},
    {Collective::reduce, CollectivePath::rabenseifner, Cut::once,
     [](const Model& m, double bytes) noexcept {
         return circulant(m, m.ranks, bytes, 0, true, Needs::lane) + with_root(m, bytes);
     }},
    {Collective::reduce_scatter, CollectivePath::ring, Cut::by_rank,
     [](const Model& m, double bytes) noexcept {
         return ring(m, m.ranks, bytes, true, Needs::lane);
     }},
    {Collective::reduce_scatter, CollectivePath::recursive_halving, Cut::once,
     [](const Model& m, double bytes) noexcept {
         return circulant(m, m.ranks, bytes, 0, true, Needs::lane, m.segments > 1);
     }},
    {Collective::bcast, CollectivePath::chain, Cut::once,
     [](const Model& m, double bytes) noexcept { return chain(m, bytes, false); }},
    {Collective::bcast, CollectivePath::binomial, Cut::once,
     [](const Model& m, double bytes) noexcept {
         return binomial(m, m.ranks, m.on_node, bytes, false);
     }},
    {Collective::bcast, CollectivePath::scatter_allgather, Cut::by_rank,
     [](const Model& m, double bytes) noexcept {
         return with_root(m, bytes) + ring(m, m.ranks, bytes, false, Needs::nothing);
     }},
    {Collective::bcast, CollectivePath::circulant, Cut::once, circulant_bcast},
    {Collective::allgather, CollectivePath::ring, Cut::once,
     [](const Model& m, double bytes) noexcept { return ring_of_blocks(m, bytes); }},
    {Collective::allgather, CollectivePath::bruck, Cut::once,
     [](const Model& m, double bytes) noexcept {
         return circulant(m, m.ranks, bytes * m.ranks, 0, false, Needs::nothing, m.segments > 1);
     }},
    {Collective::alltoall, CollectivePath::hierarchical, Cut::once, bundled},
    {Collective::alltoall, CollectivePath::bruck, Cut::once, bruck_rounds},
    {Collective::alltoall, CollectivePath::pairwise, Cut::once, all_pairs},
    {Collective::barrier, CollectivePath::dissemination, Cut::once,
     [](const Model& m, double) noexcept { return dissemination(m, m.ranks, m.on_node); }},
    {Collective::gather, CollectivePath::binomial, Cut::once, tree_of_blocks},
    {Collective::scatter, CollectivePath::binomial, Cut::once, tree_of_blocks},
};

const Row& row_of(Collective collective, CollectivePath algorithm) noexcept {
    for (const Row& row : rows)
        if (row.collective == collective && row.algorithm == algorithm) return row;
    return rows[0];
}

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
