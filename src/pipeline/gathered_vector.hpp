// SPDX-License-Identifier: BSD-3-Clause
// What all ranks get from an Allgather or Allgatherv (MPI 4.0, 6.7).
#pragma once

#include <mpi.h>

#include "operands.hpp"
#include "rank_counts.hpp"

namespace vecmpi::pipeline {

// A block of each rank. Displacements are each rank's own.
struct GatheredVector {
    void* buffer;
    MPI_Datatype type;
    offload::TypeShape shape;
    RankCounts counts;          // elements of the type
    offload::RankArray displs;  // likewise; missing: one block behind the other
    int ranks;

    MPI_Count block_bytes(int rank) const noexcept { return counts[rank] * shape.bytes; }
    MPI_Count total_bytes() const noexcept { return counts.total(ranks) * shape.bytes; }
    MPI_Count largest_bytes() const noexcept { return counts.largest(ranks) * shape.bytes; }
    MPI_Count displacement(int rank) const noexcept {
        return displs.missing() ? rank * counts[rank] : displs[rank];
    }
    void* place_of(int rank) const noexcept {
        return advanced(buffer, displacement(rank) * shape.extent);
    }
};

}  // namespace vecmpi::pipeline
