// SPDX-License-Identifier: BSD-3-Clause
// Which path serves a collective. Pure, and it rests only on what is equal on all ranks.
#pragma once

#include <cstdint>

#include "base/api.hpp"
#include "pipeline/schedules/algorithms.hpp"
#include "pipeline/schedules/cost.hpp"

namespace vecmpi::pipeline {

struct ChoiceFacts : CostFacts {
    int64_t elements = 0;     // that segments may cut between: the vector's, or the largest block's
    bool commutative = true;  // the op
    bool nonblocking = false;  // or persistent: the program computes meanwhile
    bool spans_world = false;  // as many ranks as MPI_COMM_WORLD, which spans several nodes
    unsigned lanes = 2;        // of the schedule
    bool operator==(const ChoiceFacts&) const = default;
};

struct Choice {
    // mpi; segmented, which number_of_segments() decides on; or one of the algorithms.
    CollectivePath path = CollectivePath::mpi;
    unsigned segments = 1;    // of the schedule
    double predicted_us = 0;  // of the schedule; with mpi of the best one that there was
    double library_us = 0;
    Counter why = Counter::number_of_counters;  // with mpi
    // With nothing set: the best algorithm, which may be worth a trial though the path is mpi.
    CollectivePath rival = CollectivePath::mpi;
    // The model may err by as much, or trying costs little: who serves it is decided by a trial.
    bool is_open = false;
    bool may_be_cut = false;  // segments take part
};

// Rules, the first that fits:
// 1. Nothing to do (one rank, no bytes), or an op that does not commute: mpi.
// 2. VECMPI_REPRODUCIBLE: an algorithm whose order of summation rests on bytes and ranks only.
//    Such a schedule is to be built with NodeLayout(ranks), which knows no nodes.
// 3. A setting that names a path for this size: that path.
// 4. One node, few bytes, or no algorithm predicted 5 % faster than the library: mpi.
// 5. The algorithm and the number of segments with the least predicted time, the first of equals.
// Rules 4 and 5 are what holds until a trial has shown better (trials_over_nodes.hpp).
Choice choose(const ChoiceFacts& facts, const Settings& settings) noexcept;

// A first look, before anything is known of the communicator: false where choose() takes no
// schedule for this size, and *why says so. several_nodes: MPI_COMM_WORLD spans some.
bool may_be_scheduled(Collective collective, uint64_t bytes, bool several_nodes,
                      const Settings& settings, Counter* why) noexcept;
// The same where the size is not known yet.
bool may_be_scheduled_at_some_size(Collective collective, bool several_nodes,
                                   const Settings& settings) noexcept;
// Blocking calls of fewer bytes are the library's, whatever else they are. 0: none are.
uint64_t librarys_below(Collective collective, const Settings& settings) noexcept;

// Segments that the algorithm would get: from the settings, else the model's best.
unsigned segments_for(CollectivePath algorithm, const ChoiceFacts& facts,
                      const Settings& settings) noexcept;

// The algorithm of a reduction under VECMPI_REPRODUCIBLE.
CollectivePath reproducible_algorithm(Collective collective, uint64_t bytes, int ranks) noexcept;

}  // namespace vecmpi::pipeline
