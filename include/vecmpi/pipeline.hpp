// SPDX-License-Identifier: BSD-3-Clause
// Door of src/pipeline: blocking collectives as pipelined segments of their nonblocking twin
// (Castelló et al., Accelerating distributed DNN training with pipelined MPI Allreduce, Cluster
// Computing 24, 2021, listings 1 and 2).
#pragma once

#include <mpi.h>

#include <optional>

namespace vecmpi {

// Each serves one call whole and returns its error code, or declines before it touched data:
// nothing. All ranks of the communicator decide alike: the decision rests on settings that are
// agreed, on the communicator's size, and on counts and sizes that MPI demands to be equal. Counts
// are in elements of the datatype, as in the MPI standard.

// With a commutative op of the user's: reduce-scatter and allgather.
std::optional<int> scattered_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) noexcept;

std::optional<int> segmented_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) noexcept;

std::optional<int> segmented_reduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                                    MPI_Datatype datatype, MPI_Op op, int root,
                                    MPI_Comm comm) noexcept;

std::optional<int> segmented_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
                                   MPI_Comm comm) noexcept;

std::optional<int> segmented_allgather(const void* sendbuf, MPI_Count sendcount,
                                       MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                       MPI_Datatype recvtype, MPI_Comm comm) noexcept;

// recvcounts: elements for each rank; block: the same number for all (recvcounts is null then).
std::optional<int> segmented_reduce_scatter(const void* sendbuf, void* recvbuf,
                                            const int recvcounts[], MPI_Count block,
                                            MPI_Datatype datatype, MPI_Op op,
                                            MPI_Comm comm) noexcept;

}  // namespace vecmpi
