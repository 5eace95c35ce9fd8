// SPDX-License-Identifier: BSD-3-Clause
// Collectives as schedules of our own. Each: 1. Facts of the call. 2. Is there a schedule for it?
// 3. Run it. Serves the whole call, or declines before it touched data: nothing, and a reason is
// noted.
#pragma once

#include "pipeline/api.hpp"
#include "pipeline/call_facts.hpp"
#include "pipeline/private_comm.hpp"
#include "pipeline/rank_counts.hpp"

namespace vecmpi::pipeline {

std::optional<int> scheduled_allreduce(const CollectiveForm& form, const void* sendbuf,
                                       void* recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                       MPI_Comm comm, Decline& decline) noexcept;

std::optional<int> scheduled_reduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                                    MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                                    MPI_Comm comm, Decline& decline) noexcept;

std::optional<int> scheduled_reduce_scatter(const CollectiveForm& form, const void* sendbuf,
                                            void* recvbuf, const RankCounts& counts,
                                            MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                            Decline& decline) noexcept;

std::optional<int> scheduled_bcast(const CollectiveForm& form, void* buffer, MPI_Count count,
                                   MPI_Datatype type, int root, MPI_Comm comm,
                                   Decline& decline) noexcept;

std::optional<int> scheduled_allgather(const CollectiveForm& form, const void* sendbuf,
                                       MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                       MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                       Decline& decline) noexcept;

std::optional<int> scheduled_allgatherv(const CollectiveForm& form, const void* sendbuf,
                                        MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                        offload::RankArray recvcounts, offload::RankArray displs,
                                        MPI_Datatype recvtype, MPI_Comm comm,
                                        Decline& decline) noexcept;

std::optional<int> scheduled_alltoall(const CollectiveForm& form, const void* sendbuf,
                                      MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                      Decline& decline) noexcept;

std::optional<int> scheduled_gather(const CollectiveForm& form, const void* sendbuf,
                                    MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                    MPI_Count recvcount, MPI_Datatype recvtype, int root,
                                    MPI_Comm comm, Decline& decline) noexcept;

std::optional<int> scheduled_scatter(const CollectiveForm& form, const void* sendbuf,
                                     MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                     MPI_Count recvcount, MPI_Datatype recvtype, int root,
                                     MPI_Comm comm, Decline& decline) noexcept;

// known: beside comm. In callbacks of MPI_Finalize the library is not asked about comm any more.
std::optional<int> scheduled_barrier(const CollectiveForm& form, const PrivateComm& known,
                                     MPI_Comm comm, Decline& decline) noexcept;

}  // namespace vecmpi::pipeline
