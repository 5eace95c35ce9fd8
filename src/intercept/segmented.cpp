// SPDX-License-Identifier: BSD-3-Clause
// Handlers of the collectives that may be cut into segments: the pipeline serves the call whole, or
// the generated collective_X does (twin or the library itself). Decides nothing else.
#include "vecmpi/mpi_handlers.hpp"
#include "vecmpi/pipeline.hpp"

namespace vecmpi {

int serve_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm) noexcept {
    if (const auto rc = scattered_allreduce(sendbuf, recvbuf, count, datatype, op, comm))
        return *rc;
    if (const auto rc = segmented_allreduce(sendbuf, recvbuf, count, datatype, op, comm))
        return *rc;
    return collective_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

int serve_Allreduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                      MPI_Op op, MPI_Comm comm) noexcept {
    if (const auto rc = scattered_allreduce(sendbuf, recvbuf, count, datatype, op, comm))
        return *rc;
    if (const auto rc = segmented_allreduce(sendbuf, recvbuf, count, datatype, op, comm))
        return *rc;
    return collective_Allreduce_c(sendbuf, recvbuf, count, datatype, op, comm);
}

int serve_Reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                 int root, MPI_Comm comm) noexcept {
    if (const auto rc = segmented_reduce(sendbuf, recvbuf, count, datatype, op, root, comm))
        return *rc;
    return collective_Reduce(sendbuf, recvbuf, count, datatype, op, root, comm);
}

int serve_Reduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                   MPI_Op op, int root, MPI_Comm comm) noexcept {
    if (const auto rc = segmented_reduce(sendbuf, recvbuf, count, datatype, op, root, comm))
        return *rc;
    return collective_Reduce_c(sendbuf, recvbuf, count, datatype, op, root, comm);
}

int serve_Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) noexcept {
    if (const auto rc = segmented_bcast(buffer, count, datatype, root, comm)) return *rc;
    return collective_Bcast(buffer, count, datatype, root, comm);
}

int serve_Bcast_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
                  MPI_Comm comm) noexcept {
    if (const auto rc = segmented_bcast(buffer, count, datatype, root, comm)) return *rc;
    return collective_Bcast_c(buffer, count, datatype, root, comm);
}

int serve_Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    if (const auto rc =
            segmented_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
        return *rc;
    return collective_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

int serve_Allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                      void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                      MPI_Comm comm) noexcept {
    if (const auto rc =
            segmented_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
        return *rc;
    return collective_Allgather_c(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

int serve_Reduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount,
                               MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) noexcept {
    if (const auto rc =
            segmented_reduce_scatter(sendbuf, recvbuf, nullptr, recvcount, datatype, op, comm))
        return *rc;
    return collective_Reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm);
}

int serve_Reduce_scatter_block_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                 MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) noexcept {
    if (const auto rc =
            segmented_reduce_scatter(sendbuf, recvbuf, nullptr, recvcount, datatype, op, comm))
        return *rc;
    return collective_Reduce_scatter_block_c(sendbuf, recvbuf, recvcount, datatype, op, comm);
}

int serve_Reduce_scatter(const void* sendbuf, void* recvbuf, const int recvcounts[],
                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) noexcept {
    if (recvcounts)
        if (const auto rc =
                segmented_reduce_scatter(sendbuf, recvbuf, recvcounts, 0, datatype, op, comm))
            return *rc;
    return collective_Reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

// Counts beyond int stay with the library: a segment's counts are ints.
int serve_Reduce_scatter_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
                           MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) noexcept {
    return collective_Reduce_scatter_c(sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

}  // namespace vecmpi
