// SPDX-License-Identifier: BSD-3-Clause
// Blocking collectives as pipelined segments of the library's nonblocking ones, and the user's
// operators scattered. Each serves one call whole, or declines before it touched data: nothing, and
// a reason is noted.
#pragma once

#include <mpi.h>

#include <optional>

#include "pipeline/call_facts.hpp"
#include "pipeline/rank_counts.hpp"

namespace vecmpi::pipeline {

// With a commutative op of the user's: reduce-scatter and allgather.
std::optional<int> scattered_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                       Decline& decline) noexcept;

std::optional<int> segmented_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                       Decline& decline) noexcept;

std::optional<int> segmented_reduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                                    MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                                    Decline& decline) noexcept;

std::optional<int> segmented_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
                                   MPI_Comm comm, Decline& decline) noexcept;

std::optional<int> segmented_allgather(const void* sendbuf, MPI_Count sendcount,
                                       MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                       MPI_Datatype recvtype, MPI_Comm comm,
                                       Decline& decline) noexcept;

std::optional<int> segmented_reduce_scatter(const void* sendbuf, void* recvbuf,
                                            const RankCounts& counts, MPI_Datatype datatype,
                                            MPI_Op op, MPI_Comm comm, Decline& decline) noexcept;

}  // namespace vecmpi::pipeline
