// SPDX-License-Identifier: BSD-3-Clause
// What the algorithms are put together from: one phase on one team, appended to a track. Block i of
// a vector that begins at `base` lies at base + blocks[i].first. Every reduction takes the partial
// results of the two sides in the same order on all ranks, so that all get the same bits.
#pragma once

#include "schedule.hpp"

namespace vecmpi::pipeline {

// Distances of the circulant graph: p, then half of it rounded up, down to 1.
std::vector<int> circulant_skips(int p);

// ---- reduce-scatter: afterwards the reduction of block me lies at `result`

// p-1 rounds between neighbours, n(p-1)/p elements sent by each (Patarasuk, Yuan, Bandwidth optimal
// all-reduce algorithms for clusters of workstations, JPDC 69, 2009).
void ring_reduce_scatter(Track& track, const Team& team, const Blocks& blocks, Place base,
                         Place result);

// ceil(log2 p) rounds, n(p-1)/p elements sent by each, for any p: in each round the blocks that are
// still under way are halved (Träff, Optimal, non-pipelined reduce-scatter and allreduce
// algorithms, arXiv 2410.14234, algorithm 1). `partial`: memory of the vector's size for what is
// under way; may be the result's.
void circulant_reduce_scatter(Track& track, const Team& team, const Blocks& blocks, Place base,
                              Place partial, Place result);

// ---- allgather: block me lies at base + blocks[me].first before, all blocks do afterwards

// `complete`: a position that has all blocks already, and receives nothing; -1: none.
void ring_allgather(Track& track, const Team& team, const Blocks& blocks, Place base,
                    int complete = -1);
// The rounds of circulant_reduce_scatter backwards (Bruck et al., IEEE TPDS 8, 1997).
void circulant_allgather(Track& track, const Team& team, const Blocks& blocks, Place base);

// ---- allreduce in an order of summation that is the same for all elements

// The tree of recursive doubling over the largest power of two, ranks at the largest distance
// first. Both give the same bits. (Thakur et al., Optimization of collective communication
// operations in MPICH, IJHPCA 19, 2005, section 4.5.)
void doubling_allreduce(Track& track, const Team& team, Segment vector, Place input, Place output);
void halving_allreduce(Track& track, const Team& team, Segment vector, Place input, Place output);

// ---- alltoall: block i at `input` is for position i; block i at `output` comes from there

// p-1 messages each way, to me+k and from me-k. No message waits for another.
void pairwise_alltoall(Track& track, const Team& team, const Blocks& blocks, Place input,
                       Place output);
// p-1 exchanges between two ranks at a time, all of whose blocks lie at `base`.
void pairwise_alltoall_in_place(Track& track, const Team& team, const Blocks& blocks, Place base);
// ceil(log2 p) rounds of up to half of the blocks, which are equal (Bruck et al., IEEE TPDS 8,
// 1997).
void bruck_alltoall(Track& track, const Team& team, const Blocks& blocks, Place input,
                    Place output);
// On the node each rank collects what all have for ranks at its own place of every node; it sends
// one message to each of these. `blocks`, equal ones, are node by node.
void bundled_alltoall(Track& track, const Team& on_node, const Team& over_nodes,
                      const Blocks& blocks, Place input, Place output);

// ---- rooted

// The team's position `root` gets the reduction of `vector` at `output`. Along the team, so that
// each rank receives and sends the vector once.
void chain_reduce(Track& track, const Team& team, int root, Segment vector, Place input,
                  Place output);
void binomial_reduce(Track& track, const Team& team, int root, Segment vector, Place input,
                     Place output);
// Every block from its rank to the root, and back.
void gather_to_root(Track& track, const Team& team, int root, const Blocks& blocks, Place own,
                    Place output);
void scatter_from_root(Track& track, const Team& team, int root, const Blocks& blocks, Place base);

void chain_bcast(Track& track, const Team& team, int root, Segment vector, Place base);
void binomial_bcast(Track& track, const Team& team, int root, Segment vector, Place base);
// The vector in `number` pieces, in number - 1 + ceil(log2 p) rounds, for any p (Träff,
// Round-optimal n-block broadcast schedules in logarithmic time, arXiv 2312.11236).
void circulant_bcast(Track& track, const Team& team, int root, Segment vector, unsigned number,
                     Place base);

// Equal blocks down and up a binomial tree, ceil(log2 p) rounds. Block i of the root's vector, at
// output or input + blocks[i].first, is position i's, which has it at `own`.
void binomial_gather(Track& track, const Team& team, int root, const Blocks& blocks, Place own,
                     Place output);
// in_place: the root's own block stays where it is.
void binomial_scatter(Track& track, const Team& team, int root, const Blocks& blocks, Place input,
                      Place own, bool in_place);

// ---- barrier: ceil(log2 p) rounds of signals (Hensgen, Finkel, Manber, Two algorithms for barrier
// synchronization, IJPP 17, 1988)
void dissemination_barrier(Track& track, const Team& team);

}  // namespace vecmpi::pipeline
