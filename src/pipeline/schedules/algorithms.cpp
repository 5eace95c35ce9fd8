// SPDX-License-Identifier: BSD-3-Clause
// One row for each algorithm of each collective, and how its track is put together from phases.
#include "algorithms.hpp"

#include <algorithm>

#include "phases.hpp"

namespace vecmpi::pipeline {

namespace {

constexpr Place input{Memory::input, 0};
constexpr Place output{Memory::output, 0};

// What one track is made of.
struct Part {
    const Team& team;
    int root;        // position in the team
    Segment vector;  // allreduce, reduce, bcast
    Blocks blocks;   // of the collectives that work on blocks: in the order of the team
    Place own;       // reduce_scatter, scatter: where this rank's block goes; else: where it is
    const NodeLayout& layout;
    int rank;
    int slices;       // ScheduleRequest::slices
    bool in_place;    // alltoall, scatter
    unsigned pieces;  // of an algorithm that cuts its vector itself
};

void ring_allreduce(Track& track, const Part& part) {
    const Blocks blocks = equal_blocks(part.vector, part.team.size);
    const Place own = output + blocks[static_cast<size_t>(part.team.me)].first;
    ring_reduce_scatter(track, part.team, blocks, input, own);
    ring_allgather(track, part.team, blocks, output);
}

void circulant_allreduce(Track& track, const Team& team, Segment vector, Place base) {
    const Blocks blocks = equal_blocks(vector, team.size);
    const Place own = output + blocks[static_cast<size_t>(team.me)].first;
    circulant_reduce_scatter(track, team, blocks, base, output, own);
    circulant_allgather(track, team, blocks, output);
}

// One rank of each node: those at the same place among their node's.
std::vector<int> ranks_at(const NodeLayout& layout, int place) {
    std::vector<int> ranks;
    for (int n = 0; n < layout.nodes(); ++n) ranks.push_back(layout.rank_on(n, place));
    return ranks;
}

// The nodes do the rest, in their memory.
void carry_slice(Track& track, const Part& part) {
    const int place = part.layout.place_on_node(part.rank);
    if (place >= part.slices) return;
    const std::vector<int> peers = ranks_at(part.layout, place);
    const Team over_nodes{part.layout.nodes(), part.layout.node_of(part.rank), peers.data()};
    const Blocks slices = equal_blocks(part.vector, part.slices);
    circulant_allreduce(track, over_nodes, slices[static_cast<size_t>(place)], output);
}

// Nodes with the same number of ranks: each rank reduces its slice on the node, carries it over
// the network and hands it round on the node, all by messages.
void hierarchical_by_slices(Track& track, const Part& part) {
    const NodeLayout& layout = part.layout;
    const int node = layout.node_of(part.rank), place = layout.place_on_node(part.rank);
    std::vector<int> neighbours;
    for (int i = 0; i < layout.ranks_on(node); ++i) neighbours.push_back(layout.rank_on(node, i));
    const std::vector<int> peers = ranks_at(layout, place);
    const Team on_node{static_cast<int>(neighbours.size()), place, neighbours.data()};
    const Team over_nodes{layout.nodes(), node, peers.data()};
    const Blocks slices = equal_blocks(part.vector, on_node.size);
    const Segment slice = slices[static_cast<size_t>(place)];
    const bool alone = on_node.size == 1;
    if (!alone) ring_reduce_scatter(track, on_node, slices, input, output + slice.first);
    circulant_allreduce(track, over_nodes, slice, alone ? input : output);
    if (!alone) ring_allgather(track, on_node, slices, output);
}

// Else the lowest rank of each node does it for all.
void hierarchical_by_leaders(Track& track, const Part& part) {
    const NodeLayout& layout = part.layout;
    const int node = layout.node_of(part.rank);
    std::vector<int> neighbours;
    for (int i = 0; i < layout.ranks_on(node); ++i) neighbours.push_back(layout.rank_on(node, i));
    const std::vector<int> leaders = ranks_at(layout, 0);
    const Team on_node{static_cast<int>(neighbours.size()), layout.place_on_node(part.rank),
                       neighbours.data()};
    const Team over_nodes{layout.nodes(), node, leaders.data()};
    binomial_reduce(track, on_node, 0, part.vector, input, output);
    if (on_node.me == 0) circulant_allreduce(track, over_nodes, part.vector, output);
    binomial_bcast(track, on_node, 0, part.vector, output);
}

void hierarchical_allreduce(Track& track, const Part& part) {
    if (part.slices > 0)
        carry_slice(track, part);
    else if (part.layout.uniform())
        hierarchical_by_slices(track, part);
    else
        hierarchical_by_leaders(track, part);
}

void rabenseifner_reduce(Track& track, const Part& part) {
    const Blocks blocks = equal_blocks(part.vector, part.team.size);
    const bool is_root = part.team.me == part.root;
    const Place partial = is_root ? output : track.scratch(part.vector.count) + -part.vector.first;
    const Place own = partial + blocks[static_cast<size_t>(part.team.me)].first;
    circulant_reduce_scatter(track, part.team, blocks, input, partial, own);
    gather_to_root(track, part.team, part.root, blocks, own, output);
}

void circulant_of_reduce_scatter(Track& track, const Part& part) {
    int64_t begin = part.blocks.front().first, end = begin;
    for (const Segment& block : part.blocks) {
        begin = std::min(begin, block.first);
        end = std::max(end, block.first + block.count);
    }
    const Place partial = track.scratch(end - begin) + -begin;
    circulant_reduce_scatter(track, part.team, part.blocks, input, partial, part.own);
}

// Van de Geijn's: the root sends each its block, and a ring gathers them. Nothing comes back to the
// root: its buffer is only read, and a program may read it, too.
void scatter_allgather_bcast(Track& track, const Part& part) {
    const Blocks blocks = equal_blocks(part.vector, part.team.size);
    scatter_from_root(track, part.team, part.root, blocks, output);
    ring_allgather(track, part.team, blocks, output, part.root);
}

void place_own_block(Track& track, const Part& part) {
    const Segment& own = part.blocks[static_cast<size_t>(part.team.me)];
    track.copy(part.own, output + own.first, own.count);
}

void ring_of_allgather(Track& track, const Part& part) {
    place_own_block(track, part);
    ring_allgather(track, part.team, part.blocks, output);
}

void bruck_of_allgather(Track& track, const Part& part) {
    place_own_block(track, part);
    circulant_allgather(track, part.team, part.blocks, output);
}

void pairwise_of_alltoall(Track& track, const Part& part) {
    if (part.in_place)
        pairwise_alltoall_in_place(track, part.team, part.blocks, output);
    else
        pairwise_alltoall(track, part.team, part.blocks, input, output);
}

// Nodes with the same number of ranks. A node's ranks have nothing to bundle unless they are
// several.
void hierarchical_alltoall(Track& track, const Part& part) {
    const NodeLayout& layout = part.layout;
    if (!layout.uniform() || layout.nodes() == 1 || layout.most_ranks_on_a_node() == 1)
        return pairwise_of_alltoall(track, part);
    const int node = layout.node_of(part.rank), place = layout.place_on_node(part.rank);
    std::vector<int> neighbours;
    for (int i = 0; i < layout.ranks_on(node); ++i) neighbours.push_back(layout.rank_on(node, i));
    const std::vector<int> peers = ranks_at(layout, place);
    bundled_alltoall(track, {static_cast<int>(neighbours.size()), place, neighbours.data()},
                     {layout.nodes(), node, peers.data()}, part.blocks, input, output);
}

// append() adds the rounds of one segment to its track.
struct Algorithm {
    Collective collective;
    CollectivePath name;
    void (*append)(Track& track, const Part& part);
    // Of all segments before the next round, not only of those that have a lane. Without scratch
    // memory only: a large block follows itself round the ring while others are short.
    bool goes_by_rounds = false;
    bool changes_partners = false;  // Schedule::changes_partners
    bool cuts_itself = false;       // its segments are pieces of one track
};

constexpr Algorithm algorithms[] = {
    {Collective::allreduce, CollectivePath::ring, ring_allreduce},
    {Collective::allreduce, CollectivePath::rabenseifner,
     [](Track& t, const Part& p) { circulant_allreduce(t, p.team, p.vector, input); }},
    {Collective::allreduce, CollectivePath::recursive_doubling,
     [](Track& t, const Part& p) { doubling_allreduce(t, p.team, p.vector, input, output); }},
    {Collective::allreduce, CollectivePath::recursive_halving,
     [](Track& t, const Part& p) { halving_allreduce(t, p.team, p.vector, input, output); }},
    {Collective::allreduce, CollectivePath::hierarchical, hierarchical_allreduce},
    {Collective::reduce, CollectivePath::chain,
     [](Track& t, const Part& p) { chain_reduce(t, p.team, p.root, p.vector, input, output); }},
    {Collective::reduce, CollectivePath::binomial,
     [](Track& t, const Part& p) { binomial_reduce(t, p.team, p.root, p.vector, input, output); }},
    {Collective::reduce, CollectivePath::rabenseifner, rabenseifner_reduce},
    {Collective::reduce_scatter, CollectivePath::ring,
     [](Track& t, const Part& p) { ring_reduce_scatter(t, p.team, p.blocks, input, p.own); }},
    {Collective::reduce_scatter, CollectivePath::recursive_halving, circulant_of_reduce_scatter},
    {Collective::bcast, CollectivePath::chain,
     [](Track& t, const Part& p) { chain_bcast(t, p.team, p.root, p.vector, output); }},
    {Collective::bcast, CollectivePath::binomial,
     [](Track& t, const Part& p) { binomial_bcast(t, p.team, p.root, p.vector, output); }},
    {Collective::bcast, CollectivePath::scatter_allgather, scatter_allgather_bcast},
    {Collective::bcast, CollectivePath::circulant,
     [](Track& t, const Part& p) {
         circulant_bcast(t, p.team, p.root, p.vector, p.pieces, output);
     },
     false, false, true},
    {Collective::allgather, CollectivePath::ring, ring_of_allgather, true},
    {Collective::allgather, CollectivePath::bruck, bruck_of_allgather},
    {Collective::alltoall, CollectivePath::hierarchical, hierarchical_alltoall},
    {Collective::alltoall, CollectivePath::bruck,
     [](Track& t, const Part& p) { bruck_alltoall(t, p.team, p.blocks, input, output); }},
    {Collective::alltoall, CollectivePath::pairwise, pairwise_of_alltoall, false, true},
    {Collective::barrier, CollectivePath::dissemination,
     [](Track& t, const Part& p) { dissemination_barrier(t, p.team); }},
    {Collective::gather, CollectivePath::binomial,
     [](Track& t, const Part& p) { binomial_gather(t, p.team, p.root, p.blocks, p.own, output); }},
    {Collective::scatter, CollectivePath::binomial,
     [](Track& t, const Part& p) {
         binomial_scatter(t, p.team, p.root, p.blocks, input, p.own, p.in_place);
     }},
};

const Algorithm* find_algorithm(Collective collective, CollectivePath name) noexcept {
    for (const Algorithm& algorithm : algorithms)
        if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
    return nullptr;
}

bool has_equal_blocks(Collective collective) noexcept {
    return collective == Collective::alltoall || collective == Collective::gather ||
           collective == Collective::scatter;
}

bool works_on_blocks(Collective collective) noexcept {
    return collective == Collective::reduce_scatter || collective == Collective::allgather ||
           has_equal_blocks(collective);
}

// Its input is this rank's block.
bool gathers(Collective collective) noexcept {
    return collective == Collective::allgather || collective == Collective::gather;
}

// Of each rank, in the vector.
Blocks blocks_by_rank(const ScheduleRequest& request) {
    const int ranks = request.layout->ranks();
    if (!has_equal_blocks(request.collective)) return *request.blocks;
    return equal_blocks({0, request.count * ranks}, ranks);
}

// The root of a Scatter only reads its input, in place or not.
InPlace place_of_input(const ScheduleRequest& request) {
    InPlace place{request.in_place && request.collective != Collective::scatter, 0};
    if (gathers(request.collective))
        place.offset = blocks_by_rank(request)[static_cast<size_t>(request.rank)].first;
    return place;
}

}  // namespace

bool is_algorithm_of(Collective collective, CollectivePath algorithm) noexcept {
    return find_algorithm(collective, algorithm) != nullptr;
}

// 1. The team: all ranks, node by node. 2. A track for each segment. 3. Merge.
Schedule build_schedule(const ScheduleRequest& request) {
    const Algorithm& algorithm = *find_algorithm(request.collective, request.algorithm);
    const NodeLayout& layout = *request.layout;
    const std::vector<int>& order = layout.order();
    const auto position = [&](int rank) {
        if (layout.order_is_by_rank()) return rank;
        return static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
    };
    const Team team{layout.ranks(), position(request.rank),
                    layout.order_is_by_rank() ? nullptr : order.data()};
    Blocks blocks;
    if (works_on_blocks(request.collective)) {
        const Blocks by_rank = blocks_by_rank(request);
        for (int rank : order) blocks.push_back(by_rank[static_cast<size_t>(rank)]);
    }
    // In place the result stays where this rank's input was, until nothing of the input is needed.
    const bool moves_at_end = request.collective == Collective::reduce_scatter && request.in_place;

    const unsigned segments = algorithm.cuts_itself ? 1 : request.segments;
    std::vector<Track> tracks(segments);
    for (unsigned s = 0; s < segments; ++s) {
        Part part{team,
                  position(request.root),
                  {},
                  {},
                  {},
                  layout,
                  request.rank,
                  request.slices,
                  request.in_place,
                  request.segments};
        if (works_on_blocks(request.collective)) {
            part.blocks = part_of_blocks(blocks, segments, s);
            const auto me = static_cast<size_t>(team.me);
            const int64_t begins = part.blocks[me].first;
            part.own = gathers(request.collective)
                           ? input + (begins - blocks[me].first)
                           : output + (moves_at_end ? begins : begins - blocks[me].first);
        } else {
            part.vector = segment(request.count, segments, s);
        }
        algorithm.append(tracks[s], part);
    }
    Track last;
    if (moves_at_end) {
        const Segment& own = blocks[static_cast<size_t>(team.me)];
        last.copy(output + own.first, output, own.count);
    }
    const unsigned lanes = algorithm.goes_by_rounds ? segments : request.lanes;
    Schedule schedule = make_schedule(tracks, last, lanes, place_of_input(request));
    schedule.changes_partners = algorithm.changes_partners;
    return schedule;
}

}  // namespace vecmpi::pipeline
