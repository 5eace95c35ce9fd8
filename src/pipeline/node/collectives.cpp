// SPDX-License-Identifier: BSD-3-Clause
// The collectives that one node serves. Each: 1. How many bytes, and are they ours? 2. Can there be
// a NodeComm, and would the library not refuse the call? 3. What fits into a line takes one turn of
// the NodeComm, if it is there; the rest goes through its bays.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "datatype/api.hpp"
#include "jobs.hpp"
#include "library/api/algorithms.hpp"
#include "node_comm.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::pipeline::node {

namespace {

// Of a predefined type. One with gaps is a pair: a value, and an int behind it.
struct Element {
    uint32_t bytes = 0;  // with the gaps; 0: the library's
    uint32_t gaps = 0;   // bytes

    // The library leaves as they are what lies in the gaps of a receive buffer.
    void copy(void* to, const void* from, MPI_Count count) const noexcept {
        if (gaps == 0) {
            std::memcpy(to, from, static_cast<size_t>(count) * bytes);
            return;
        }
        const size_t value = bytes - gaps - sizeof(int);
        const size_t index = (value + alignof(int) - 1) / alignof(int) * alignof(int);
        auto* into = static_cast<unsigned char*>(to);
        const auto* out_of = static_cast<const unsigned char*>(from);
        for (; count > 0; --count, into += bytes, out_of += bytes) {
            std::memcpy(into, out_of, value);
            std::memcpy(into + index, out_of + index, sizeof(int));
        }
    }
};

// What a thread reduced last.
struct KnownReduction {
    MPI_Op op = MPI_OP_NULL;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    Element element;
};
thread_local constinit KnownReduction known_reduction __attribute__((tls_model("initial-exec")));

Element look_at_reduction(MPI_Op op, MPI_Datatype type) noexcept {
    Element element;
    if (offload::is_reducible(op, type)) {
        const offload::TypeShape shape = offload::shape_of(type);
        element = {static_cast<uint32_t>(shape.extent),
                   static_cast<uint32_t>(shape.extent - shape.bytes)};
    }
    known_reduction = {op, type, element};
    return element;
}

Element element_of(MPI_Op op, MPI_Datatype type) noexcept {
    return known_reduction.op == op && known_reduction.type == type ? known_reduction.element
                                                                    : look_at_reduction(op, type);
}

// Types with gaps go through bays by way of a copy on the stack, up to where the library's Reduce
// has another order for what they are without the gaps.
constexpr size_t most_with_gaps = library::library_reduces_by_tree_up_to;

// Of a reduction; 0: the library's, or nothing to do. VECMPI_REPRODUCIBLE sums in one order, on one
// node and over several.
size_t bytes_of_reduction(MPI_Count elements, Element element) noexcept {
    if (elements <= 0 || settings().reproducible) return 0;
    if (elements > PTRDIFF_MAX / std::max<int64_t>(element.bytes, 1)) return 0;
    const size_t bytes = static_cast<size_t>(elements) * element.bytes;
    return element.gaps != 0 && bytes > most_with_gaps ? 0 : bytes;
}

bool fits_line(size_t bytes) noexcept { return bytes <= kernels::line_data_bytes; }

// Where the user named a path or segments, those run; a line is never cut.
bool is_automatic(const PathRanges& paths, size_t bytes) noexcept {
    return bytes != 0 && paths.at(bytes) == CollectivePath::automatic;
}
bool is_ours(const PathRanges& paths, size_t bytes) noexcept {
    return is_automatic(paths, bytes) && settings().segments == 0 && settings().segment_bytes == 0;
}
bool is_ours_or_line(const PathRanges& paths, size_t bytes) noexcept {
    return fits_line(bytes) ? is_automatic(paths, bytes) : is_ours(paths, bytes);
}

// No bays: not on the node.
BaysToUse bays_for(const NodeSite& site, Call call, MPI_Comm comm, LargeKind kind,
                   size_t bytes) noexcept {
    NodeComm* const node = node_comm_for(site, call, comm, bytes);
    return node == nullptr ? BaysToUse{} : node->bays_for(call, comm, kind, bytes);
}

// The communicator's error handler hears of an error.
int served(Call call, size_t bytes, MPI_Comm comm, int error = MPI_SUCCESS) noexcept {
    count_call(static_cast<size_t>(call), Path::on_node, bytes);
    if (error != MPI_SUCCESS) real.Comm_call_errhandler(comm, error);
    return error;
}

using Bytes = Buffer<unsigned char>;

unsigned char* as_bytes(const void* buffer) noexcept {
    return static_cast<unsigned char*>(const_cast<void*>(buffer));
}

Reduction reduction_of(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type,
                       MPI_Op op, size_t bytes) noexcept {
    return {as_bytes(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf),
            as_bytes(recvbuf),
            count,
            type,
            op,
            bytes / static_cast<size_t>(count)};
}

// serve(Reduction): of dense elements. With gaps they are copied, and reduced in place there.
template <class Serve>
int serve_dense(const Reduction& what, Element element, const Serve& serve) noexcept {
    if (element.gaps == 0) return serve(what);
    alignas(64) unsigned char copy[most_with_gaps];
    Reduction copied = what;
    element.copy(copy, what.input, what.elements);
    copied.input = copy;
    if (what.output != nullptr) copied.output = copy;
    const int error = serve(copied);
    if (what.output != nullptr) element.copy(what.output, copy, what.elements);
    return error;
}

// A buffer whose bytes move. Ranks may describe the same bytes by different types: what lies
// otherwise in memory is packed.
class MovedData {
  public:
    MovedData(const void* buffer, MPI_Count count, MPI_Datatype type, MPI_Comm comm) noexcept
        : in_use_(type),
          buffer_(as_bytes(buffer)),
          type_(type),
          comm_(comm),
          is_dense_(library::is_builtin_type(type)) {
        if (count <= 0 || !library::is_type_handle(type) || !real.Pack_c) return;
        const MPI_Count element = offload::size_of(type);
        if (element <= 0 || count > PTRDIFF_MAX / element) return;
        count_ = count;
        bytes_ = static_cast<size_t>(count * element);
    }
    size_t bytes() const noexcept { return bytes_; }  // 0: none, or not ours
    // By the library, on this rank alone perhaps, before it waits for others.
    bool is_refused_as_output() const noexcept {
        return offload::is_refused_output(buffer_, count_, type_) ||
               !offload::is_committed(type_, comm_);
    }
    bool is_refused_as_input() const noexcept {
        return offload::is_refused(buffer_, count_, type_) || !offload::is_committed(type_, comm_);
    }
    int pack(unsigned char* to) const noexcept {
        if (!is_dense_)
            return datatype::PackableBuffer(buffer_, count_, type_)
                .pack(to, static_cast<MPI_Count>(bytes_), comm_);
        std::memcpy(to, buffer_, bytes_);
        return MPI_SUCCESS;
    }
    int unpack(const unsigned char* from) const noexcept {
        if (!is_dense_)
            return datatype::PackableBuffer(buffer_, count_, type_)
                .unpack(from, static_cast<MPI_Count>(bytes_), comm_);
        std::memcpy(buffer_, from, bytes_);
        return MPI_SUCCESS;
    }
    // Where the bytes lie as they move: the buffer itself, or else *memory. Null: out of memory.
    unsigned char* place(Bytes* memory) const noexcept {
        if (is_dense_) return buffer_;
        *memory = allocate<unsigned char>(bytes_);
        return memory->get();
    }

  private:
    datatype::TypeInUse in_use_;
    unsigned char* buffer_;
    MPI_Count count_ = 0;
    MPI_Datatype type_;
    MPI_Comm comm_;
    size_t bytes_ = 0;
    bool is_dense_;
};

int bcast_in_line(NodeComm& node, const MovedData& data, int root, size_t* told) noexcept {
    kernels::Line value;
    unsigned char* const bytes = data_of(value, data.bytes());
    const bool is_root = node.rank() == root;
    const int error = is_root ? data.pack(bytes) : MPI_SUCCESS;
    *told = node.bcast(value, data.bytes(), root);
    return is_root || *told != data.bytes() ? error : data.unpack(bytes);
}

int bcast_by_bays(const BaysToUse& use, const MovedData& data, bool is_root, int root,
                  size_t* told) noexcept {
    Bytes memory;
    unsigned char* bytes = data.place(&memory);
    int error = bytes == nullptr ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (memory && is_root) error = data.pack(bytes);
    use.bays->bcast(error == MPI_SUCCESS ? bytes : nullptr, data.bytes(), root, told, use.way);
    if (is_root) *told = data.bytes();
    return memory && !is_root && *told == data.bytes() ? data.unpack(bytes) : error;
}

template <class Serve>
std::optional<int> reduce_scatter_on_node(Call call, const void* sendbuf, void* recvbuf,
                                          MPI_Count total, MPI_Count own, MPI_Datatype type,
                                          MPI_Op op, const NodeSite& site, MPI_Comm comm,
                                          const Serve& serve) noexcept {
    const Element element = element_of(op, type);
    const size_t bytes = bytes_of_reduction(total, element);
    if (!is_ours(settings().reduce_scatter, bytes) || fits_line(bytes) || element.gaps != 0)
        return std::nullopt;
    if (sendbuf == recvbuf || offload::is_refused(sendbuf, total, type) ||
        offload::is_refused_output(recvbuf, own, type))
        return std::nullopt;
    const BaysToUse use = bays_for(site, call, comm, LargeKind::reduce_scatter, bytes);
    if (use.bays == nullptr) return std::nullopt;
    serve(use, reduction_of(sendbuf, recvbuf, total, type, op, bytes));
    return served(call, bytes, comm);
}

}  // namespace

std::optional<int> barrier(Call call, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(comm);
    if (site.declined()) return std::nullopt;
    NodeComm* const node = node_comm_for(site, call, comm, 0);
    if (node == nullptr) return std::nullopt;
    kernels::Line nothing;
    node->allreduce(nothing, 0, combine_nothing);
    return served(call, 0, comm);
}

std::optional<int> allreduce(Call call, const void* sendbuf, void* recvbuf, MPI_Count count,
                             MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) noexcept {
    const Element element = element_of(op, datatype);
    const size_t bytes = bytes_of_reduction(count, element);
    if (!is_ours_or_line(settings().allreduce, bytes)) return std::nullopt;
    if (sendbuf == recvbuf || offload::is_refused(sendbuf, count, datatype) ||
        offload::is_refused_output(recvbuf, count, datatype))
        return std::nullopt;
    const NodeSite site = node_site(comm);
    if (site.declined()) return std::nullopt;
    if (!fits_line(bytes)) {
        const BaysToUse use = bays_for(site, call, comm, LargeKind::allreduce, bytes);
        if (use.bays == nullptr) return std::nullopt;
        return served(call, bytes, comm,
                      serve_dense(reduction_of(sendbuf, recvbuf, count, datatype, op, bytes),
                                  element, [&](const Reduction& what) noexcept {
                                      return use.bays->allreduce(what, use.way);
                                  }));
    }
    NodeComm* const node = node_comm_for(site, call, comm, bytes);
    if (node == nullptr) return std::nullopt;
    kernels::Line value;
    element.copy(data_of(value, bytes), sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, count);
    node->allreduce(value, bytes, CombineElements{count, datatype, op, bytes});
    element.copy(recvbuf, data_of(value, bytes), count);
    return served(call, bytes, comm);
}

std::optional<int> iallreduce(Call call, MPI_Request* request, const void* sendbuf, void* recvbuf,
                              MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                              MPI_Comm comm) noexcept {
    const Element element = element_of(op, datatype);
    const size_t bytes = bytes_of_reduction(count, element);
    if (!is_ours(settings().allreduce, bytes) || element.gaps != 0 || !offload::jobs_are_served())
        return std::nullopt;
    const NodeSite site = node_site(comm);
    if (site.node == nullptr) return std::nullopt;
    auto jobs = site.node->job_site();  // asked for by all ranks, refused or not
    if (!jobs || request == nullptr || sendbuf == recvbuf ||
        offload::is_refused(sendbuf, count, datatype) ||
        offload::is_refused_output(recvbuf, count, datatype))
        return std::nullopt;
    site.node->poll_now_and_then();
    served(call, bytes, comm);
    const Reduction what = reduction_of(sendbuf, recvbuf, count, datatype, op, bytes);
    std::unique_ptr<offload::Job> job(new (std::nothrow) AllreduceJob(jobs, what));
    if (job) return offload::post_job(call, std::move(job), comm, request);
    // The others do not go back.
    *request = MPI_REQUEST_NULL;
    AllreduceJob now(std::move(jobs), what);
    return offload::run_job(call, now, comm);
}

std::optional<int> reduce(Call call, const void* sendbuf, void* recvbuf, MPI_Count count,
                          MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm) noexcept {
    const Element element = element_of(op, datatype);
    const size_t bytes = bytes_of_reduction(count, element);
    if (!is_ours_or_line(settings().reduce, bytes)) return std::nullopt;
    const NodeSite site = node_site(comm);
    if (site.declined() || root < 0 || root >= site.ranks) return std::nullopt;
    const bool is_root = site.rank == root;
    if (offload::is_refused(sendbuf, count, datatype) ||
        (is_root ? sendbuf == recvbuf || offload::is_refused_output(recvbuf, count, datatype)
                 : sendbuf == MPI_IN_PLACE))
        return std::nullopt;
    if (!fits_line(bytes)) {
        const BaysToUse use = bays_for(site, call, comm, LargeKind::reduce, bytes);
        if (use.bays == nullptr) return std::nullopt;
        serve_dense(reduction_of(sendbuf, is_root ? recvbuf : nullptr, count, datatype, op, bytes),
                    element, [&](const Reduction& what) noexcept {
                        use.bays->reduce(what, root);
                        return MPI_SUCCESS;
                    });
        return served(call, bytes, comm);
    }
    NodeComm* const node = node_comm_for(site, call, comm, bytes);
    if (node == nullptr) return std::nullopt;
    kernels::Line value;
    element.copy(data_of(value, bytes), sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, count);
    node->reduce(value, bytes, root, CombineElements{count, datatype, op, bytes});
    if (is_root) element.copy(recvbuf, data_of(value, bytes), count);
    return served(call, bytes, comm);
}

std::optional<int> reduce_scatter(Call call, const void* sendbuf, void* recvbuf,
                                  offload::RankArray recvcounts, MPI_Datatype datatype, MPI_Op op,
                                  MPI_Comm comm) noexcept {
    if (recvcounts.missing()) return std::nullopt;
    const NodeSite site = node_site(comm);
    if (site.declined()) return std::nullopt;
    MPI_Count total = 0;
    for (int rank = 0; rank < site.ranks; ++rank) {
        if (recvcounts[rank] < 0) return std::nullopt;
        total += recvcounts[rank];
    }
    return reduce_scatter_on_node(call, sendbuf, recvbuf, total, recvcounts[site.rank], datatype,
                                  op, site, comm,
                                  [&](const BaysToUse& use, const Reduction& what) noexcept {
                                      use.bays->reduce_scatter(what, recvcounts, use.way);
                                  });
}

std::optional<int> reduce_scatter_block(Call call, const void* sendbuf, void* recvbuf,
                                        MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                                        MPI_Comm comm) noexcept {
    const NodeSite site = node_site(comm);
    if (site.declined() || recvcount <= 0 || recvcount > PTRDIFF_MAX / site.ranks)
        return std::nullopt;
    return reduce_scatter_on_node(call, sendbuf, recvbuf, recvcount * site.ranks, recvcount,
                                  datatype, op, site, comm,
                                  [&](const BaysToUse& use, const Reduction& what) noexcept {
                                      use.bays->reduce_scatter_block(what, recvcount, use.way);
                                  });
}

// Only the number of bytes is the same on all ranks.
std::optional<int> bcast(Call call, void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
                         MPI_Comm comm) noexcept {
    const MovedData data(buffer, count, datatype, comm);
    if (!is_ours_or_line(settings().bcast, data.bytes())) return std::nullopt;
    const NodeSite site = node_site(comm);
    if (site.declined() || root < 0 || root >= site.ranks || data.is_refused_as_output())
        return std::nullopt;
    size_t told = 0;
    int error = MPI_SUCCESS;
    if (fits_line(data.bytes())) {
        NodeComm* const node = node_comm_for(site, call, comm, data.bytes());
        if (node == nullptr) return std::nullopt;
        error = bcast_in_line(*node, data, root, &told);
    } else {
        const BaysToUse use = bays_for(site, call, comm, LargeKind::bcast, data.bytes());
        if (use.bays == nullptr) return std::nullopt;
        error = bcast_by_bays(use, data, site.rank == root, root, &told);
    }
    if (error == MPI_SUCCESS && told != data.bytes())
        error = told > data.bytes() ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
    return served(call, data.bytes(), comm, error);
}

std::optional<int> allgather(Call call, const void* sendbuf, MPI_Count sendcount,
                             MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                             MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(comm);
    if (site.declined() || recvcount <= 0 || recvcount > PTRDIFF_MAX / site.ranks)
        return std::nullopt;
    const MovedData all(recvbuf, recvcount * site.ranks, recvtype, comm);
    const size_t bytes = all.bytes() / static_cast<size_t>(site.ranks);
    if (!is_ours(settings().allgather, bytes) || all.is_refused_as_output()) return std::nullopt;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    const offload::TypeShape shape = offload::shape_of(recvtype);
    auto* const own_place = as_bytes(recvbuf) + site.rank * recvcount * shape.extent;
    const MovedData own = in_place ? MovedData(own_place, recvcount, recvtype, comm)
                                   : MovedData(sendbuf, sendcount, sendtype, comm);
    if (own.bytes() != bytes || own.is_refused_as_input()) return std::nullopt;
    // The library's own error, by its own test.
    const MPI_Count place = site.rank * recvcount * shape.bytes;
    if (sendtype == recvtype && sendcount == recvcount &&
        sendbuf == static_cast<const char*>(recvbuf) + place)
        return std::nullopt;
    const BaysToUse use = bays_for(site, call, comm, LargeKind::allgather, all.bytes());
    if (use.bays == nullptr) return std::nullopt;
    Bytes own_memory, all_memory;
    unsigned char* const from = own.place(&own_memory);
    unsigned char* const to = all.place(&all_memory);
    int error = MPI_SUCCESS;
    if (from == nullptr || to == nullptr) error = MPI_ERR_NO_MEM;
    if (own_memory && error == MPI_SUCCESS) error = own.pack(from);
    use.bays->allgather(from, to, bytes, use.way);
    if (all_memory && error == MPI_SUCCESS) error = all.unpack(to);
    return served(call, bytes, comm, error);
}

}  // namespace vecmpi::pipeline::node
