// SPDX-License-Identifier: BSD-3-Clause
// Door of src/intranode: collectives of ranks that share a node, through memory
// (docs/intranode.md).
#pragma once

#include <mpi.h>

#include <optional>

#include "vecmpi/offload.hpp"

namespace vecmpi {

// Each serves one call whole and returns its error code, or declines before it touched data:
// nothing. All ranks of the communicator decide alike: the decision rests on settings that
// are agreed, on the communicator, on how many of these calls came before, and on sizes that MPI
// demands to be equal. Parameters as in the MPI standard. Also for calls from a callback, which
// other ranks may make outside of one.

std::optional<int> intranode_barrier(Call call, MPI_Comm comm) noexcept;

std::optional<int> intranode_allreduce(Call call, const void* sendbuf, void* recvbuf,
                                       MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                       MPI_Comm comm) noexcept;

// Nonblocking: the request completes with a job of the engine's. The library's own calls stay with
// it: ROMIO makes some when this rank happens to test a request, in another order on each rank.
std::optional<int> intranode_iallreduce(Call call, MPI_Request* request, const void* sendbuf,
                                        void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                                        MPI_Op op, MPI_Comm comm) noexcept;

std::optional<int> intranode_reduce(Call call, const void* sendbuf, void* recvbuf, MPI_Count count,
                                    MPI_Datatype datatype, MPI_Op op, int root,
                                    MPI_Comm comm) noexcept;

std::optional<int> intranode_bcast(Call call, void* buffer, MPI_Count count, MPI_Datatype datatype,
                                   int root, MPI_Comm comm) noexcept;

std::optional<int> intranode_reduce_scatter(Call call, const void* sendbuf, void* recvbuf,
                                            RankArray recvcounts, MPI_Datatype datatype, MPI_Op op,
                                            MPI_Comm comm) noexcept;

std::optional<int> intranode_reduce_scatter_block(Call call, const void* sendbuf, void* recvbuf,
                                                  MPI_Count recvcount, MPI_Datatype datatype,
                                                  MPI_Op op, MPI_Comm comm) noexcept;

std::optional<int> intranode_allgather(Call call, const void* sendbuf, MPI_Count sendcount,
                                       MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                       MPI_Datatype recvtype, MPI_Comm comm) noexcept;

// Stands where the library frees a communicator. The program's delete callbacks run in there, and
// collectives that they make on it are this thread's still; nobody else finds what stood beside it,
// since the next communicator may get its handle. Given up in the end, unless it stays.
class NodeCommDeparture {
  public:
    explicit NodeCommDeparture(MPI_Comm comm) noexcept;
    ~NodeCommDeparture();
    NodeCommDeparture(const NodeCommDeparture&) = delete;
    NodeCommDeparture& operator=(const NodeCommDeparture&) = delete;
    void stay() noexcept;  // the library refused

  private:
    struct Departing* departing_;
};
// After the real MPI_Finalize, whose callbacks may make collectives.
void forget_node_comms() noexcept;

}  // namespace vecmpi
