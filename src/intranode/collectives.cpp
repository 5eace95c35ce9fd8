// SPDX-License-Identifier: BSD-3-Clause
// The collectives that one node serves. Each: 1. Do the data fit into a line? Large ones must not
// pay for a look at the communicator. 2. Can there be a NodeComm, and would the library not refuse
// the call? 3. One turn of it, if it is there.
#include <cstring>

#include "node_comm.hpp"
#include "vecmpi/intranode.hpp"

namespace vecmpi {

namespace {

constexpr auto no_data = [](const Line&, const Line&, Line&) noexcept {};

// What a thread reduced last. Predefined types whose elements have no gaps.
struct KnownReduction {
    MPI_Op op = MPI_OP_NULL;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    uint32_t element = 0;  // bytes; 0: the library's
};
thread_local constinit KnownReduction known_reduction __attribute__((tls_model("initial-exec")));

uint32_t look_at_reduction(MPI_Op op, MPI_Datatype type) noexcept {
    uint32_t element = 0;
    if (is_reducible(op, type)) {
        const TypeShape shape = shape_of(type);
        if (shape.extent == shape.bytes) element = static_cast<uint32_t>(shape.bytes);
    }
    known_reduction = {op, type, element};
    return element;
}

// Bytes of a reduction that a line carries; 0: none. VECMPI_REPRODUCIBLE sums in one order, on one
// node and over several.
size_t bytes_in_line(MPI_Count elements, MPI_Datatype type, MPI_Op op) noexcept {
    if (elements <= 0 || elements > static_cast<MPI_Count>(line_data_bytes)) return 0;
    if (settings().reproducible) return 0;
    const uint32_t element = known_reduction.op == op && known_reduction.type == type
                                 ? known_reduction.element
                                 : look_at_reduction(op, type);
    const size_t bytes = static_cast<size_t>(elements) * element;
    return bytes <= line_data_bytes ? bytes : 0;
}

struct Combine {
    MPI_Count elements;
    MPI_Datatype type;
    MPI_Op op;
    size_t bytes;
    void operator()(const Line& left, const Line& right, Line& into) const noexcept {
        reduce_elements(data_of(left, bytes), data_of(right, bytes), data_of(into, bytes), elements,
                        type, static_cast<MPI_Count>(bytes) / elements, op);
    }
};

// Where the user named a path, that one runs.
bool is_ours(const PathRanges& paths, size_t bytes) noexcept {
    return paths.at(bytes) == CollectivePath::automatic;
}

// A buffer whose bytes move through a line.
class MovedData {
  public:
    MovedData(void* buffer, MPI_Count count, MPI_Datatype type, MPI_Comm comm) noexcept
        : buffer_(buffer), type_(type), comm_(comm), is_dense_(is_builtin_type(type)) {
        if (count <= 0 || !is_type_handle(type) || !real.Pack_c) return;
        const MPI_Count element = size_of(type);
        if (element <= 0 || count > static_cast<MPI_Count>(line_data_bytes) / element) return;
        count_ = count;
        bytes_ = static_cast<size_t>(count * element);
    }
    size_t bytes() const noexcept { return bytes_; }  // 0: not one that a line carries
    // By the library, on this rank alone perhaps, before it waits for others.
    bool is_refused() const noexcept {
        return is_refused_output(buffer_, count_, type_) || !is_committed(type_, comm_);
    }
    int pack(Line& line) const noexcept {
        if (is_dense_) {
            std::memcpy(data_of(line, bytes_), buffer_, bytes_);
            return MPI_SUCCESS;
        }
        return PackableBuffer(buffer_, count_, type_)
            .pack(data_of(line, bytes_), static_cast<MPI_Count>(bytes_), comm_);
    }
    int unpack(const Line& line) const noexcept {
        if (is_dense_) {
            std::memcpy(buffer_, data_of(line, bytes_), bytes_);
            return MPI_SUCCESS;
        }
        return PackableBuffer(buffer_, count_, type_)
            .unpack(data_of(line, bytes_), static_cast<MPI_Count>(bytes_), comm_);
    }

  private:
    void* buffer_;
    MPI_Count count_ = 0;
    MPI_Datatype type_;
    MPI_Comm comm_;
    size_t bytes_ = 0;
    bool is_dense_;
};

void count_served(Call call, size_t bytes) noexcept {
    count_call(static_cast<size_t>(call), Path::on_node, bytes);
}

}  // namespace

std::optional<int> intranode_barrier(Call call, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(comm);
    if (site.declined()) return std::nullopt;
    NodeComm* const node = node_comm_for(site, call, comm);
    if (node == nullptr) return std::nullopt;
    Line nothing;
    node->allreduce(nothing, 0, no_data);
    count_served(call, 0);
    return MPI_SUCCESS;
}

std::optional<int> intranode_allreduce(Call call, const void* sendbuf, void* recvbuf,
                                       MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                       MPI_Comm comm) noexcept {
    const size_t bytes = bytes_in_line(count, datatype, op);
    if (bytes == 0 || !is_ours(settings().allreduce, bytes)) return std::nullopt;
    if (sendbuf == recvbuf || is_refused(sendbuf, count, datatype) ||
        is_refused_output(recvbuf, count, datatype))
        return std::nullopt;
    const NodeSite site = node_site(comm);
    if (site.declined()) return std::nullopt;
    NodeComm* const node = node_comm_for(site, call, comm);
    if (node == nullptr) return std::nullopt;
    Line value;
    std::memcpy(data_of(value, bytes), sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, bytes);
    node->allreduce(value, bytes, Combine{count, datatype, op, bytes});
    std::memcpy(recvbuf, data_of(value, bytes), bytes);
    count_served(call, bytes);
    return MPI_SUCCESS;
}

std::optional<int> intranode_reduce(Call call, const void* sendbuf, void* recvbuf, MPI_Count count,
                                    MPI_Datatype datatype, MPI_Op op, int root,
                                    MPI_Comm comm) noexcept {
    const size_t bytes = bytes_in_line(count, datatype, op);
    if (bytes == 0 || !is_ours(settings().reduce, bytes)) return std::nullopt;
    const NodeSite site = node_site(comm);
    if (site.declined() || root < 0 || root >= site.ranks) return std::nullopt;
    const bool is_root = site.rank == root;
    if (is_refused(sendbuf, count, datatype) ||
        (is_root ? sendbuf == recvbuf || is_refused_output(recvbuf, count, datatype)
                 : sendbuf == MPI_IN_PLACE))
        return std::nullopt;
    NodeComm* const node = node_comm_for(site, call, comm);
    if (node == nullptr) return std::nullopt;
    Line value;
    std::memcpy(data_of(value, bytes), sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, bytes);
    node->reduce(value, bytes, root, Combine{count, datatype, op, bytes});
    if (is_root) std::memcpy(recvbuf, data_of(value, bytes), bytes);
    count_served(call, bytes);
    return MPI_SUCCESS;
}

// Only the number of bytes is the same on all ranks: what lies otherwise in memory is packed.
std::optional<int> intranode_bcast(Call call, void* buffer, MPI_Count count, MPI_Datatype datatype,
                                   int root, MPI_Comm comm) noexcept {
    const MovedData data(buffer, count, datatype, comm);
    if (data.bytes() == 0 || !is_ours(settings().bcast, data.bytes())) return std::nullopt;
    const NodeSite site = node_site(comm);
    if (site.declined() || root < 0 || root >= site.ranks || data.is_refused()) return std::nullopt;
    NodeComm* const node = node_comm_for(site, call, comm);
    if (node == nullptr) return std::nullopt;
    const bool is_root = site.rank == root;
    Line value;
    int error = is_root ? data.pack(value) : MPI_SUCCESS;
    const size_t told = node->bcast(value, data.bytes(), root);
    if (told != data.bytes()) {
        error = told > data.bytes() ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
        real.Comm_call_errhandler(comm, error);
    } else if (!is_root) {
        error = data.unpack(value);
    }
    count_served(call, data.bytes());
    return error;
}

}  // namespace vecmpi
