// SPDX-License-Identifier: BSD-3-Clause
// The cost model: how long a collective takes by each algorithm, in closed form. Pure, and of
// + - * / and comparisons of doubles only, so that ranks on different processors compute the same
// bits and choose alike. A model, no measurement: docs/schedules.md says how far to trust it.
#pragma once

#include <cstdint>

#include "algorithms.hpp"
#include "base/api.hpp"

namespace vecmpi::pipeline {

// LogGP's constants (Alexandrov et al., LogGP, SPAA 1995), with the overhead per message only and
// the gap per message as the overhead. Between nodes the link is full duplex, and the ranks of a
// node share it.
struct NetworkConstants {
    double latency_us = 40;      // of the wire and the stack, without the overhead
    double bytes_per_us = 119;   // of a node's link, each way; 1 Gbit/s less the frames
    double overhead_us = 8;      // of a message, on the sender's and on the receiver's CPU
    double node_latency_us = 1;  // the same three between ranks of a node
    double node_bytes_per_us = 4000;
    double node_overhead_us = 0.5;
    double reduce_bytes_per_us = 5000;  // of result
    double rendezvous_bytes = 65536;    // longer messages first ask: one more way there and back
};

// The defaults, where VECMPI_NETWORK does not say otherwise.
NetworkConstants network_constants(const NetworkSetting& setting) noexcept;

// A Barrier has no data. Its trials are kept by size, and 0 is that of the nodes' memory.
constexpr uint64_t barrier_bytes = 1;

// What a collective's time depends on.
struct CostFacts {
    Collective collective = Collective::allreduce;
    // As the settings count: the vector; allgather, gather: what one rank gives; alltoall: to one
    // other; scatter: what one rank gets. barrier: barrier_bytes.
    uint64_t bytes = 0;
    int ranks = 1;
    int nodes = 1;
    int most_ranks_on_a_node = 1;
    bool uniform = true;   // all nodes have as many
    bool user_op = false;  // of the program's own
    // allgather: what one rank gives at most; `bytes` are the mean then. 0: all give as many.
    uint64_t largest_bytes = 0;
    bool operator==(const CostFacts&) const = default;
};

struct Pipelining {
    unsigned segments = 1;
    unsigned lanes = 2;  // segments that have memory at once
};

// One of our algorithms; is_algorithm_of(facts.collective, algorithm) holds.
double predicted_us(CollectivePath algorithm, const CostFacts& facts, const Pipelining& pipelining,
                    const NetworkConstants& network) noexcept;

// What the library takes, by the algorithm that it chooses (library/api.hpp), and its name.
struct LibraryCost {
    double us;
    const char* algorithm;
};
LibraryCost library_cost(const CostFacts& facts, const NetworkConstants& network) noexcept;

// Pieces that the algorithm cuts one segment into for its messages; the smallest of them.
int64_t blocks_of_segment(CollectivePath algorithm, const CostFacts& facts) noexcept;

}  // namespace vecmpi::pipeline
