// SPDX-License-Identifier: BSD-3-Clause
// What the closed forms of cost.cpp and library_cost.cpp are put together from: rounds, and the
// phases of algorithms. Times are microseconds. Pure, and of + - * / and comparisons of doubles
// only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cost.hpp"

namespace vecmpi::pipeline::cost {

enum class Needs : bool { lane, nothing };  // of memory, besides the result's

inline int64_t ceil_log2(int64_t number) noexcept {
    int64_t rounds = 0;
    for (int64_t reached = 1; reached < number; reached *= 2) ++rounds;
    return rounds;
}

inline int floor_power_of_two(int number) noexcept {
    int power = 1;
    while (power <= number / 2) power *= 2;
    return power;
}

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
          largest(largest_in_means(facts)),
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
        const double times = memory == Needs::lane ? groups : 1;
        return std::max(times * round.chain, segments * round.busy);
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
    // To move so many bytes in memory.
    double copied(double bytes) const noexcept { return bytes / net_.node_bytes_per_us; }
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

    // So many neighbouring blocks of `mean` bytes, the largest one among them.
    double blocks(double mean, double number) const noexcept {
        const double other = ranks > 1 ? (ranks - largest) / (ranks - 1) : 1;
        return mean * (largest + (number - 1) * other);
    }

    int ranks, nodes, on_node;
    bool uniform, user_op;
    double largest;  // block of an Allgather, in mean blocks; 1: all are equal
    double segments, groups;

  private:
    static double largest_in_means(const CostFacts& facts) noexcept {
        if (facts.bytes == 0 || facts.largest_bytes <= facts.bytes) return 1;
        return std::min(static_cast<double>(facts.ranks), static_cast<double>(facts.largest_bytes) /
                                                              static_cast<double>(facts.bytes));
    }
    NetworkConstants net_;
};

// ---- phases: `bytes` are the vector's, all that one segment has ---------------------------------

double ring(const Model& m, int ranks, double bytes, bool reduces, Needs memory) noexcept;
// An Allgather's, of blocks of `mean` bytes that may be uneven.
double ring_of_blocks(const Model& m, double mean) noexcept;
// sharing: ranks of a node whose messages cross its link at once; 0: those that the distance says.
// blocks_are_cut: they lie apart, so that each is a message of its own.
double circulant(const Model& m, int ranks, double bytes, int sharing, bool reduces, Needs memory,
                 bool blocks_are_cut = false) noexcept;
// Ranks beyond the largest power of two hand over their vector, and get the result back.
double folds(const Model& m, double bytes) noexcept;
// Of `core` ranks, a power of two. are_leaders: one of each node.
double halving(const Model& m, int core, double bytes, bool reduces, Needs memory,
               bool are_leaders = false) noexcept;
double binomial(const Model& m, int ranks, int on_node, double bytes, bool reduces) noexcept;
double chain(const Model& m, double bytes, bool reduces) noexcept;
// Alltoall: `bytes` are one block's. All pairs at once: of no pair does a message wait for another.
double all_pairs(const Model& m, double bytes) noexcept;
double bruck_rounds(const Model& m, double bytes) noexcept;
double bundled(const Model& m, double bytes) noexcept;
// Bcast in m.segments pieces of `bytes` over the circulant graph.
double circulant_bcast(const Model& m, double bytes) noexcept;
// Gather and Scatter: `bytes` are one block's.
double tree_of_blocks(const Model& m, double bytes) noexcept;
// Barrier of so many ranks, on_node of them on each.
double dissemination(const Model& m, int ranks, int on_node) noexcept;
// Every other rank's block between it and the root.
double with_root(const Model& m, double bytes) noexcept;

}  // namespace vecmpi::pipeline::cost
