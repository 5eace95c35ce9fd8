// SPDX-License-Identifier: BSD-3-Clause
// Door of src/pipeline/node: collectives of ranks that share a node, through memory
// (docs/intranode.md).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/api/profile.hpp"
#include "offload/api.hpp"
#include "offload/api/comm_table.hpp"
#include "pipeline/api/form.hpp"
#include "pipeline/operands.hpp"

namespace vecmpi::pipeline::node {

// Each serves one call whole and returns its error code. Or it declines before it touched data: it
// returns nothing. All ranks of the communicator decide alike, by what is equal on all of them:
// settings, the communicator, how many of these calls came before, and sizes that MPI demands to be
// equal. Parameters are those of the MPI standard (MPI 4.0, 6). Calls in callbacks are served too:
// other ranks may make the same call outside of one.
//
// The request of a nonblocking or persistent form completes with a job of the engine's. Memory for
// these is made by a later blocking call, or by the call that makes a persistent request. For calls
// of the program only: ROMIO makes some when a rank happens to test a request, in another order on
// each rank.

std::optional<int> barrier(const CollectiveForm& form, MPI_Comm comm) noexcept;

std::optional<int> allreduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                             MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                             MPI_Comm comm) noexcept;

std::optional<int> reduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                          MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                          MPI_Comm comm) noexcept;

std::optional<int> bcast(const CollectiveForm& form, void* buffer, MPI_Count count,
                         MPI_Datatype datatype, int root, MPI_Comm comm) noexcept;

std::optional<int> reduce_scatter(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                                  offload::RankArray recvcounts, MPI_Datatype datatype, MPI_Op op,
                                  MPI_Comm comm) noexcept;

std::optional<int> reduce_scatter_block(const CollectiveForm& form, const void* sendbuf,
                                        void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                        MPI_Op op, MPI_Comm comm) noexcept;

std::optional<int> scan(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                        MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) noexcept;
std::optional<int> exscan(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                          MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm) noexcept;

std::optional<int> allgather(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                             MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                             MPI_Datatype recvtype, MPI_Comm comm) noexcept;

std::optional<int> gather(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                          MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                          MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept;

std::optional<int> scatter(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                           MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                           MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept;

std::optional<int> alltoall(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                            MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                            MPI_Datatype recvtype, MPI_Comm comm) noexcept;

std::optional<int> gatherv(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                           MPI_Datatype sendtype, void* recvbuf, offload::RankArray recvcounts,
                           offload::RankArray displs, MPI_Datatype recvtype, int root,
                           MPI_Comm comm) noexcept;

std::optional<int> scatterv(const CollectiveForm& form, const void* sendbuf,
                            offload::RankArray sendcounts, offload::RankArray displs,
                            MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                            MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept;

std::optional<int> allgatherv(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                              MPI_Datatype sendtype, void* recvbuf, offload::RankArray recvcounts,
                              offload::RankArray displs, MPI_Datatype recvtype,
                              MPI_Comm comm) noexcept;

std::optional<int> alltoallv(const CollectiveForm& form, const void* sendbuf,
                             offload::RankArray sendcounts, offload::RankArray sdispls,
                             MPI_Datatype sendtype, void* recvbuf, offload::RankArray recvcounts,
                             offload::RankArray rdispls, MPI_Datatype recvtype,
                             MPI_Comm comm) noexcept;

std::optional<int> alltoallw(const CollectiveForm& form, const void* sendbuf,
                             offload::RankArray sendcounts, offload::RankArray sdispls,
                             const MPI_Datatype* sendtypes, void* recvbuf,
                             offload::RankArray recvcounts, offload::RankArray rdispls,
                             const MPI_Datatype* recvtypes, MPI_Comm comm) noexcept;

std::optional<int> neighbor_allgather(const CollectiveForm& form, const void* sendbuf,
                                      MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                      MPI_Count recvcount, MPI_Datatype recvtype,
                                      MPI_Comm comm) noexcept;

std::optional<int> neighbor_allgatherv(const CollectiveForm& form, const void* sendbuf,
                                       MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                       offload::RankArray recvcounts, offload::RankArray displs,
                                       MPI_Datatype recvtype, MPI_Comm comm) noexcept;

std::optional<int> neighbor_alltoall(const CollectiveForm& form, const void* sendbuf,
                                     MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                     MPI_Count recvcount, MPI_Datatype recvtype,
                                     MPI_Comm comm) noexcept;

std::optional<int> neighbor_alltoallv(const CollectiveForm& form, const void* sendbuf,
                                      offload::RankArray sendcounts, offload::RankArray sdispls,
                                      MPI_Datatype sendtype, void* recvbuf,
                                      offload::RankArray recvcounts, offload::RankArray rdispls,
                                      MPI_Datatype recvtype, MPI_Comm comm) noexcept;

std::optional<int> neighbor_alltoallw(const CollectiveForm& form, const void* sendbuf,
                                      offload::RankArray sendcounts, offload::RankArray sdispls,
                                      const MPI_Datatype* sendtypes, void* recvbuf,
                                      offload::RankArray recvcounts, offload::RankArray rdispls,
                                      const MPI_Datatype* recvtypes, MPI_Comm comm) noexcept;

// True once after a collective above declined on this thread and has counted why. The paths that
// are asked next do not count the call again.
bool take_node_decline() noexcept;
void note_node_decline() noexcept;

// ---- what collectives over several nodes do on one of them
// ---------------------------------------------

// Shared memory is made by blocking collectives. A communicator that a program uses for a moment
// must not pay that, so as many of its calls go to the library first.
inline uint64_t calls_before_sharing() noexcept {
    return settings().intranode == IntranodeMode::on ? 0 : 20;
}

// The ranks of a communicator that share this node. Each call blocks, and all of them make the same
// calls in the same order, with vectors of the same length. One thread at a time.
class NodeTeam {
  public:
    // Collective over node_comm, whose ranks are all on this node; it is not used afterwards. Null
    // on all of them where one cannot.
    static std::unique_ptr<NodeTeam> make(MPI_Comm node_comm) noexcept;
    // Likewise; before the first call for more than a line. False on all where one cannot.
    static constexpr size_t most_bytes_in_line = 56;
    bool make_staged(MPI_Comm node_comm) noexcept;
    ~NodeTeam();
    NodeTeam(const NodeTeam&) = delete;
    NodeTeam& operator=(const NodeTeam&) = delete;

    // The first rank's output becomes the reduction of all inputs, of most_small_bytes at most.
    // Without an element the ranks only wait for each other.
    static constexpr size_t most_small_bytes = 4096;
    void reduce_to_first(const Operands& vector) noexcept;
    // The first rank's bytes become those of all, most_small_bytes at most. Returns the first
    // rank's `good`; where that is false the data are undefined.
    bool bcast_from_first(void* data, size_t bytes, bool good) noexcept;

    // The vector has so many slices, segment(count, slices, i), at most as many as the team has
    // ranks. The i-th slice of the i-th rank's output becomes the reduction of all inputs; its
    // other slices are undefined.
    void reduce_slices(const Operands& vector, int slices) noexcept;
    // All outputs become whole.
    void gather_slices(const Operands& vector, int slices) noexcept;

  private:
    explicit NodeTeam(std::unique_ptr<class NodeComm> node) noexcept;
    const std::unique_ptr<class NodeComm> node_;  // null: one rank
    class StagedCollectives* staged_ = nullptr;
};

struct NodeCommEntry;
}  // namespace vecmpi::pipeline::node

extern template class vecmpi::offload::CommDeparture<vecmpi::pipeline::node::NodeCommEntry>;

namespace vecmpi::pipeline::node {

using NodeCommDeparture = offload::CommDeparture<NodeCommEntry>;
// What this process's trials have found beside what its profile says. May throw std::bad_alloc.
void append_learned_on_node(std::vector<base::LearnedRow>& rows);
// After the real MPI_Finalize, whose callbacks may make collectives.
void forget_node_comms() noexcept;

}  // namespace vecmpi::pipeline::node
