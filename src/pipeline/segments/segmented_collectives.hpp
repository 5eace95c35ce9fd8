// SPDX-License-Identifier: BSD-3-Clause
// Blocking calls for which pieces of the library's own collectives were chosen: pipelined segments
// of its nonblocking one, or the program's operator scattered. Each returns the call's error code.
#pragma once

#include "pipeline/collective_call.hpp"
#include "pipeline/gathered_vector.hpp"

namespace vecmpi::pipeline {

// Allreduce and Reduce in n segments, cut between elements, whatever the type and op. In place the
// input is MPI_IN_PLACE.
int segmented_reduction(const CollectiveCall& call, unsigned n, const Operands& what) noexcept;

// what: of the whole vector, of a predefined type.
int segmented_reduce_scatter(const CollectiveCall& call, unsigned n, const Operands& what,
                             const RankCounts& counts, bool in_place) noexcept;

int segmented_bcast(const CollectiveCall& call, unsigned n, void* buffer, MPI_Count count,
                    MPI_Datatype type) noexcept;

// given: without blocks in place. gathered: of equal blocks.
int segmented_allgather(const CollectiveCall& call, unsigned n, const BlockSide& given,
                        const GatheredVector& gathered) noexcept;

// Allreduce with a commutative op of the program's: reduce-scatter and allgather. In place the
// input is MPI_IN_PLACE.
int scattered_allreduce(const CollectiveCall& call, const Operands& what) noexcept;

}  // namespace vecmpi::pipeline
