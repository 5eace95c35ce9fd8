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

int broadcast_in_line(NodeComm& node, const PackedBuffer& data, int root,
                      size_t* root_bytes) noexcept {
    const size_t bytes = bytes_of(data);
    kernels::Line value;
    const bool is_root = node.rank() == root;
    const int error = is_root ? data.pack_to(data_of(value, bytes)) : MPI_SUCCESS;
    *root_bytes = node.bcast(value, bytes, root);
    return is_root || *root_bytes != bytes ? error : data.unpack_from(data_of(value, bytes));
}

int broadcast_staged(NodeComm& node, PackedBuffer& data, int root, size_t* root_bytes,
                     Transport by) noexcept {
    const bool is_root = node.rank() == root;
    const size_t bytes = bytes_of(data);
    unsigned char* const place = data.place();
    int error = place == nullptr ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (is_root && error == MPI_SUCCESS) error = data.pack();
    node.staged()->bcast(error == MPI_SUCCESS ? place : nullptr, bytes, root, root_bytes, by);
    if (is_root) *root_bytes = bytes;
    return error == MPI_SUCCESS && !is_root && *root_bytes == bytes ? data.unpack() : error;
}

// The root may have other bytes, where the program is wrong.
int checked(int error, size_t root_bytes, size_t bytes) noexcept {
    if (error != MPI_SUCCESS || root_bytes == bytes) return error;
    return root_bytes > bytes ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
}

class Broadcast final : public StagedWork {
  public:
    Broadcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) noexcept
        : in_use_(type), data_(buffer, count, type, comm), root_(root) {}
    size_t bytes() const noexcept { return bytes_of(data_); }
    int run_in_line(NodeComm& node) noexcept {
        size_t root_bytes = 0;
        const int error = broadcast_in_line(node, data_, root_, &root_bytes);
        return checked(error, root_bytes, bytes());
    }
    int run(NodeComm& node, Transport by) noexcept override {
        size_t root_bytes = 0;
        const int error = broadcast_staged(node, data_, root_, &root_bytes, by);
        return checked(error, root_bytes, bytes());
    }

  private:
    datatype::TypeInUse in_use_;
    PackedBuffer data_;
    int root_;
};

class Gathering final : public StagedWork {
  public:
    Gathering(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
              MPI_Count all, MPI_Datatype recvtype, MPI_Comm comm) noexcept
        : send_in_use_(sendtype),
          receive_in_use_(recvtype),
          own_(sendbuf, sendcount, sendtype, comm),
          all_(recvbuf, all, recvtype, comm) {}
    size_t own_bytes() const noexcept { return bytes_of(own_); }
    size_t all_bytes() const noexcept { return bytes_of(all_); }
    int run(NodeComm& node, Transport by) noexcept override {
        unsigned char* const from = own_.place();
        unsigned char* const to = all_.place();
        int error = from == nullptr || to == nullptr ? MPI_ERR_NO_MEM : MPI_SUCCESS;
        if (error == MPI_SUCCESS) error = own_.pack();
        node.staged()->move_equal_blocks({}, from, to, own_bytes(), by);
        return error == MPI_SUCCESS ? all_.unpack() : error;
    }

  private:
    datatype::TypeInUse send_in_use_, receive_in_use_;
    PackedBuffer own_, all_;
};

}  // namespace

std::optional<int> bcast(const CollectiveForm& form, void* buffer, MPI_Count count,
                         MPI_Datatype datatype, int root, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined() || !site.has(root)) return std::nullopt;
    Broadcast work(buffer, count, datatype, root, comm_to_pack_for(form, comm));
    const size_t bytes = work.bytes();
    if (!is_ours_or_line(Collective::bcast, bytes) ||
        offload::is_refused_output(buffer, count, datatype) ||
        !offload::is_committed(datatype, comm))
        return std::nullopt;
    return serve(form, site, comm, {Collective::bcast, bytes, bytes}, std::move(work),
                 [&](NodeComm& node) noexcept { return work.run_in_line(node); });
}

std::optional<int> allgather(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                             MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                             MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined() || recvcount <= 0 || recvcount > PTRDIFF_MAX / site.ranks ||
        !library::is_type_handle(recvtype))
        return std::nullopt;
    const MPI_Count all = recvcount * site.ranks;
    const offload::TypeShape shape = offload::shape_of(recvtype);
    if (sendbuf == MPI_IN_PLACE) {
        sendbuf = advanced(recvbuf, site.rank * recvcount * shape.extent);
        sendcount = recvcount;
        sendtype = recvtype;
    } else if (sendtype == recvtype && sendcount == recvcount &&
               is_alias(sendbuf, advanced(recvbuf, site.rank * recvcount * shape.bytes))) {
        return std::nullopt;  // the library's own error, by its own test
    }
    Gathering work(sendbuf, sendcount, sendtype, recvbuf, all, recvtype,
                   comm_to_pack_for(form, comm));
    const size_t bytes = work.all_bytes() / static_cast<size_t>(site.ranks);
    if (!is_ours(Collective::allgather, bytes) || work.own_bytes() != bytes ||
        offload::is_refused_output(recvbuf, all, recvtype) ||
        !offload::is_committed(recvtype, comm) ||
        offload::is_refused(sendbuf, sendcount, sendtype) || !offload::is_committed(sendtype, comm))
        return std::nullopt;
    return serve(form, site, comm, {Collective::allgather, work.all_bytes(), bytes},
                 std::move(work));
}

}  // namespace vecmpi::pipeline::node
