// SPDX-License-Identifier: BSD-3-Clause
// Door of src/intranode: collectives of ranks that share a node, through memory
// (docs/intranode.md).
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>

#include "vecmpi/mpi_calls.hpp"

namespace vecmpi {

// Each serves one blocking call whole and returns its error code, or declines before it touched
// data: nothing. All ranks of the communicator decide alike: the decision rests on settings that
// are agreed, on the communicator, on how many of these calls came before, and on sizes that MPI
// demands to be equal. Parameters as in the MPI standard. Also for calls from a callback, which
// other ranks may make outside of one.

std::optional<int> intranode_barrier(Call call, MPI_Comm comm) noexcept;

std::optional<int> intranode_allreduce(Call call, const void* sendbuf, void* recvbuf,
                                       MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                       MPI_Comm comm) noexcept;

std::optional<int> intranode_reduce(Call call, const void* sendbuf, void* recvbuf, MPI_Count count,
                                    MPI_Datatype datatype, MPI_Op op, int root,
                                    MPI_Comm comm) noexcept;

std::optional<int> intranode_bcast(Call call, void* buffer, MPI_Count count, MPI_Datatype datatype,
                                   int root, MPI_Comm comm) noexcept;

// What stands beside a communicator of the program's. Taken before that is freed; dropped after, or
// returned where the library refused.
using NodeCommHold = std::shared_ptr<void>;
NodeCommHold take_node_comm(MPI_Comm comm) noexcept;
void return_node_comm(MPI_Comm comm, NodeCommHold ours) noexcept;
// Before MPI_Finalize.
void forget_node_comms() noexcept;

}  // namespace vecmpi
