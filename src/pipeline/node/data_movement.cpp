// SPDX-License-Identifier: BSD-3-Clause
// Bcast and Allgather on one node. Only the number of bytes is the same on all ranks: what lies
// otherwise in memory is packed.
#include <cstdint>

#include "call_rules.hpp"
#include "datatype/api.hpp"

namespace vecmpi::pipeline::node {

namespace {

using datatype::PackedBuffer;

size_t bytes_of(const PackedBuffer& data) noexcept { return static_cast<size_t>(data.bytes()); }

int bcast_in_line(NodeComm& node, const PackedBuffer& data, int root, size_t* root_bytes) noexcept {
    const size_t bytes = bytes_of(data);
    kernels::Line value;
    const bool is_root = node.rank() == root;
    const int error = is_root ? data.pack_to(data_of(value, bytes)) : MPI_SUCCESS;
    *root_bytes = node.bcast(value, bytes, root);
    return is_root || *root_bytes != bytes ? error : data.unpack_from(data_of(value, bytes));
}

int bcast_staged(const NodeCall& use, PackedBuffer& data, bool is_root, int root,
                 size_t* root_bytes) noexcept {
    const size_t bytes = bytes_of(data);
    unsigned char* const place = data.place();
    int error = place == nullptr ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (is_root && error == MPI_SUCCESS) error = data.pack();
    use.staged->bcast(error == MPI_SUCCESS ? place : nullptr, bytes, root, root_bytes,
                      use.transport);
    if (is_root) *root_bytes = bytes;
    return error == MPI_SUCCESS && !is_root && *root_bytes == bytes ? data.unpack() : error;
}

}  // namespace

std::optional<int> bcast(Call call, void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
                         MPI_Comm comm) noexcept {
    const datatype::TypeInUse in_use(datatype);
    PackedBuffer data(buffer, count, datatype, comm);
    const size_t bytes = bytes_of(data);
    if (!is_ours_or_line(Collective::bcast, bytes)) return std::nullopt;
    const NodeSite site = node_site(comm);
    if (site.declined() || !site.has(root) || offload::is_refused_output(buffer, count, datatype) ||
        !offload::is_committed(datatype, comm))
        return std::nullopt;
    const NodeCall use = node_call(site, call, comm, Collective::bcast, bytes);
    if (use.node == nullptr) return std::nullopt;
    size_t root_bytes = 0;
    int error = use.staged == nullptr
                    ? bcast_in_line(*use.node, data, root, &root_bytes)
                    : bcast_staged(use, data, site.rank == root, root, &root_bytes);
    if (error == MPI_SUCCESS && root_bytes != bytes)
        error = root_bytes > bytes ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
    return served(call, bytes, comm, error);
}

std::optional<int> allgather(Call call, const void* sendbuf, MPI_Count sendcount,
                             MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                             MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(comm);
    if (site.declined() || recvcount <= 0 || recvcount > PTRDIFF_MAX / site.ranks)
        return std::nullopt;
    const datatype::TypeInUse receive_in_use(recvtype);
    PackedBuffer all(recvbuf, recvcount * site.ranks, recvtype, comm);
    const size_t bytes = bytes_of(all) / static_cast<size_t>(site.ranks);
    if (!is_ours(Collective::allgather, bytes) ||
        offload::is_refused_output(recvbuf, recvcount * site.ranks, recvtype) ||
        !offload::is_committed(recvtype, comm))
        return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(recvtype);
    if (sendbuf == MPI_IN_PLACE) {
        sendbuf = advanced(recvbuf, site.rank * recvcount * shape.extent);
        sendcount = recvcount;
        sendtype = recvtype;
    } else if (sendtype == recvtype && sendcount == recvcount &&
               sendbuf == advanced(recvbuf, site.rank * recvcount * shape.bytes)) {
        return std::nullopt;  // the library's own error, by its own test
    }
    const datatype::TypeInUse send_in_use(sendtype);
    PackedBuffer own(sendbuf, sendcount, sendtype, comm);
    if (bytes_of(own) != bytes || offload::is_refused(sendbuf, sendcount, sendtype) ||
        !offload::is_committed(sendtype, comm))
        return std::nullopt;
    const NodeCall use = node_call(site, call, comm, Collective::allgather, bytes_of(all));
    if (use.node == nullptr) return std::nullopt;
    unsigned char* const from = own.place();
    unsigned char* const to = all.place();
    int error = from == nullptr || to == nullptr ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (error == MPI_SUCCESS) error = own.pack();
    use.staged->move_equal_blocks({}, from, to, bytes, use.transport);
    if (error == MPI_SUCCESS) error = all.unpack();
    return served(call, bytes, comm, error);
}

}  // namespace vecmpi::pipeline::node
