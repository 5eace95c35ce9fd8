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

namespace vecmpi::pipeline {

// The form in which a program asks for a collective.
struct CollectiveForm {
    enum class Kind : uint8_t { blocking, nonblocking, persistent };
    Call call;
    Kind kind = Kind::blocking;
    MPI_Request* request = nullptr;  // nonblocking, persistent
};

// Each serves one call whole and returns its error code, or declines before it touched data:
// nothing. All ranks of the communicator decide alike: the decision rests on settings that are
// agreed, on the communicator, on what was called on it before, and on counts and sizes that MPI
// demands to be equal. Parameters as in the MPI standard, counts in elements of the datatype. A
// Barrier and a small Allreduce are served from callbacks, too, outside of which other ranks may
// make the same call.

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

struct PrivateCommEntry;
}  // namespace vecmpi::pipeline

extern template class vecmpi::offload::CommDeparture<vecmpi::pipeline::PrivateCommEntry>;

namespace vecmpi::pipeline {

using PrivateCommDeparture = offload::CommDeparture<PrivateCommEntry>;
// After MPI_Finalize, whose callbacks may use them until the end.
void forget_private_comms() noexcept;

}  // namespace vecmpi::pipeline
