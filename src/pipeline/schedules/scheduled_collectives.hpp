// SPDX-License-Identifier: BSD-3-Clause
// Calls for which a schedule of ours was chosen: what it needs is made ready, and it runs. Nothing:
// no rank can keep a persistent one.
#pragma once

#include "pipeline/candidate.hpp"
#include "pipeline/gathered_vector.hpp"

namespace vecmpi::pipeline {

// Dense elements, and an operator that may be applied in any order. Else a reason is noted.
bool schedule_can_reduce(CollectiveCall& call, MPI_Datatype type) noexcept;

// Allreduce and Reduce.
std::optional<int> scheduled_reduction(const CollectiveCall& call, Candidate by,
                                       const Operands& what, bool in_place) noexcept;
// what: of the whole vector.
std::optional<int> scheduled_reduce_scatter(const CollectiveCall& call, Candidate by,
                                            const Operands& what, const RankCounts& counts,
                                            bool in_place) noexcept;

std::optional<int> scheduled_bcast(const CollectiveCall& call, Candidate by, void* buffer,
                                   MPI_Count count, MPI_Datatype type) noexcept;
// given: without blocks in place.
std::optional<int> scheduled_allgather(const CollectiveCall& call, Candidate by,
                                       const BlockSide& given,
                                       const GatheredVector& gathered) noexcept;
std::optional<int> scheduled_alltoall(const CollectiveCall& call, Candidate by,
                                      const BlockSide& given, const BlockSide& taken) noexcept;

// Gather and Scatter. The root in place has no block of its own: that lies in the vector.
struct RootedSides {
    BlockSide own;     // this rank's block
    BlockSide vector;  // the root's: one block of each rank
    bool in_place() const noexcept { return own.blocks == 0; }
    const BlockSide& known() const noexcept { return in_place() ? vector : own; }
    MPI_Count block_bytes() const noexcept { return known().block_bytes(); }
};
std::optional<int> scheduled_rooted(const CollectiveCall& call, Candidate by,
                                    const RootedSides& sides) noexcept;

// own: beside the call's communicator. In callbacks of MPI_Finalize the library is not asked about
// that any more.
std::optional<int> scheduled_barrier(CollectiveCall& call, const PrivateComm& own) noexcept;

}  // namespace vecmpi::pipeline
