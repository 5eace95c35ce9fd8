// SPDX-License-Identifier: BSD-3-Clause
// The algorithms of the collectives as pure functions: arguments of a call in, one rank's schedule
// out. docs/schedules.md says which wins where.
#pragma once

#include <string_view>

#include "base/api.hpp"
#include "node_layout.hpp"
#include "schedule.hpp"

namespace vecmpi::pipeline {

// What a schedule is made for. All but `rank` and `in_place` is equal on all ranks.
struct ScheduleRequest {
    Collective collective = Collective::allreduce;
    CollectivePath algorithm = CollectivePath::ring;
    int rank = 0;
    int root = 0;  // reduce, bcast, gather, scatter
    // allreduce, reduce, bcast: elements of the vector; alltoall, gather, scatter: of a block
    int64_t count = 0;
    const Blocks* blocks = nullptr;  // reduce_scatter, allgather: of each rank, in the vector
    unsigned segments = 1;
    unsigned lanes = 2;     // segments under way at once
    bool in_place = false;  // MPI_IN_PLACE; bcast: always (one buffer)
    const NodeLayout* layout = nullptr;
    // hierarchical, not 0: the nodes do their part in memory. They reduce into so many slices
    // before the schedule, at most as many as any node has ranks, and gather them after it. The
    // schedule only carries the i-th rank's i-th slice, in the output, over the nodes.
    int slices = 0;
};

// The first ones of enum Collective; of scan and exscan, which lie among them, there are none.
constexpr size_t number_of_scheduled_collectives = static_cast<size_t>(Collective::scatter) + 1;

// True where there is such an algorithm for this collective.
bool is_algorithm_of(Collective collective, CollectivePath algorithm) noexcept;

// Memory of the schedule, in elements. allreduce: input and output are the vector. reduce: the
// same; output on the root only. reduce_scatter: input is the vector, output this rank's block; in
// place the output begins where the vector does. bcast: output is the vector. allgather: input is
// this rank's block, output the vector.
// alltoall: both have a block for each rank. gather: as allgather, output on the root only.
// scatter: input is the vector, on the root only, and output this rank's block, which in place
// nobody writes there. barrier: none.
Schedule build_schedule(const ScheduleRequest& request);

}  // namespace vecmpi::pipeline
