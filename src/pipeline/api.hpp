// SPDX-License-Identifier: BSD-3-Clause
// Door of src/pipeline: collectives as schedules of our own (docs/schedules.md), as pipelined
// segments of the library's nonblocking ones (Castelló et al., Accelerating distributed DNN
// training with pipelined MPI Allreduce, Cluster Computing 24, 2021, listings 1 and 2), or
// scattered.
#pragma once

#include <mpi.h>

#include <optional>

#include "offload/api.hpp"
#include "offload/api/comm_table.hpp"
#include "pipeline/api/form.hpp"

namespace vecmpi::pipeline {

// Each serves one call whole and returns its error code. Or it declines before it touched data: it
// returns nothing. All ranks of the communicator decide alike, by what is equal on all of them:
// settings, the communicator, what was called on it before, and counts and sizes that MPI demands
// to be equal. Parameters are those of the MPI standard (MPI 4.0, 6), counts in elements of the
// datatype. A Barrier and a small Allreduce are served in callbacks too: other ranks may make the
// same call outside of one.

std::optional<int> barrier(const CollectiveForm& form, MPI_Comm comm) noexcept;

std::optional<int> allreduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                             MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                             MPI_Comm comm) noexcept;

std::optional<int> reduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                          MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                          MPI_Comm comm) noexcept;

std::optional<int> reduce_scatter(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                                  offload::RankArray recvcounts, MPI_Datatype datatype, MPI_Op op,
                                  MPI_Comm comm) noexcept;

std::optional<int> reduce_scatter_block(const CollectiveForm& form, const void* sendbuf,
                                        void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                        MPI_Op op, MPI_Comm comm) noexcept;

std::optional<int> bcast(const CollectiveForm& form, void* buffer, MPI_Count count,
                         MPI_Datatype datatype, int root, MPI_Comm comm) noexcept;

std::optional<int> allgather(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                             MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                             MPI_Datatype recvtype, MPI_Comm comm) noexcept;

std::optional<int> allgatherv(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                              MPI_Datatype sendtype, void* recvbuf, offload::RankArray recvcounts,
                              offload::RankArray displs, MPI_Datatype recvtype,
                              MPI_Comm comm) noexcept;

std::optional<int> alltoall(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                            MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                            MPI_Datatype recvtype, MPI_Comm comm) noexcept;

std::optional<int> gather(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                          MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                          MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept;

std::optional<int> scatter(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                           MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                           MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept;

struct PrivateCommEntry;
}  // namespace vecmpi::pipeline

extern template class vecmpi::offload::CommDeparture<vecmpi::pipeline::PrivateCommEntry>;

namespace vecmpi::pipeline {

// With VECMPI_PROFILE=learn, at the begin of MPI_Finalize: rank 0 adds to the host's profile what
// trials have found.
void keep_what_was_learned() noexcept;

using PrivateCommDeparture = offload::CommDeparture<PrivateCommEntry>;
// After MPI_Finalize, whose callbacks may use them until the end.
void forget_private_comms() noexcept;

}  // namespace vecmpi::pipeline
