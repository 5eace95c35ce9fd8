// SPDX-License-Identifier: BSD-3-Clause
// Barrier and reductions on one node.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "call_rules.hpp"
#include "kernels/api.hpp"
#include "library/api/algorithms.hpp"

namespace vecmpi::pipeline::node {

namespace {

// Of a predefined type. One with gaps is a pair: a value, and an int behind it.
struct Element {
    uint32_t bytes = 0;  // with the gaps; 0: the library's
    uint32_t gaps = 0;   // bytes

    // The library leaves as they are what lies in the gaps of a receive buffer.
    void copy(void* to, const void* from, MPI_Count count) const noexcept {
        if (gaps == 0) {
            kernels::copy_bytes(to, from, static_cast<size_t>(count) * bytes);
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

// Types with gaps go through staging buffers by way of a copy on the stack, up to where the
// library's Reduce has another order for what they are without the gaps.
constexpr size_t most_with_gaps = library::library_reduces_by_tree_up_to;

// Of a reduction; 0: the library's, or nothing to do. VECMPI_REPRODUCIBLE sums in one order, on one
// node and over several.
size_t bytes_of_reduction(MPI_Count elements, Element element) noexcept {
    if (elements <= 0 || settings().reproducible) return 0;
    if (elements > PTRDIFF_MAX / std::max<int64_t>(element.bytes, 1)) return 0;
    const size_t bytes = static_cast<size_t>(elements) * element.bytes;
    return element.gaps != 0 && bytes > most_with_gaps ? 0 : bytes;
}

Operands operands(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
                  Element element) noexcept {
    return {sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, recvbuf, count, type, op, element.bytes};
}

// serve(Operands): of dense elements. With gaps they are copied, and reduced in place there.
template <class Serve>
int serve_dense(const Operands& what, Element element, const Serve& serve) noexcept {
    if (element.gaps == 0) return serve(what);
    alignas(64) unsigned char copy[most_with_gaps];
    Operands copied = what;
    element.copy(copy, what.input, what.count);
    copied.input = copy;
    if (what.output != nullptr) copied.output = copy;
    const int error = serve(copied);
    if (what.output != nullptr) element.copy(what.output, copy, what.count);
    return error;
}

// All reductions through staging buffers.
class Reduction final : public StagedWork {
  public:
    // root: of Reduce.
    Reduction(Collective collective, const Operands& what, Element element, int root = 0) noexcept
        : collective_(collective), what_(what), element_(element), root_(root) {}
    // Reduce_scatter.
    Reduction(const Operands& what, Element element, const RankCounts& counts) noexcept
        : collective_(Collective::reduce_scatter),
          what_(what),
          element_(element),
          counts_(counts) {}
    int run(NodeComm& node, Transport by) noexcept override {
        return serve_dense(what_, element_, [&](const Operands& dense) noexcept {
            return reduce(*node.staged(), dense, by);
        });
    }
    void keep_arrays(int ranks) override { counts_.keep(arrays_, ranks); }

  private:
    int reduce(StagedCollectives& staged, const Operands& dense, Transport by) const noexcept {
        using Own = StagedCollectives::Own;
        switch (collective_) {
            case Collective::allreduce:
                return staged.allreduce(dense, by);
            case Collective::reduce:
                staged.reduce(dense, root_);
                break;
            case Collective::scan:
                staged.scan(dense, Own::included);
                break;
            case Collective::exscan:
                staged.scan(dense, Own::excluded);
                break;
            default:
                staged.reduce_scatter(dense, counts_, by);
        }
        return MPI_SUCCESS;
    }

    Collective collective_;
    Operands what_;
    Element element_;
    int root_ = 0;
    RankCounts counts_{MPI_Count{0}};
    KeptArrays arrays_;
};

class Barrier final : public StagedWork {
  public:
    int run(NodeComm& node, Transport) noexcept override {
        node.staged()->barrier();
        return MPI_SUCCESS;
    }
};

std::optional<int> reduce_scatter_on_node(const CollectiveForm& form, const void* sendbuf,
                                          void* recvbuf, const RankCounts& counts,
                                          MPI_Datatype type, MPI_Op op, const NodeSite& site,
                                          MPI_Comm comm) noexcept {
    const MPI_Count total = counts.total(site.ranks);
    const Element element = element_of(op, type);
    const size_t bytes = bytes_of_reduction(total, element);
    if (!is_ours(Collective::reduce_scatter, bytes) || element.gaps != 0) return std::nullopt;
    if (are_refused(sendbuf, total, recvbuf, counts[site.rank], type)) return std::nullopt;
    const Operands what = operands(sendbuf, recvbuf, total, type, op, element);
    return serve(form, site, comm, {Collective::reduce_scatter, bytes, bytes},
                 Reduction(what, element, counts));
}

// Rank 0 of an Exscan gets no result, and may give no memory for it.
std::optional<int> scan_on_node(const CollectiveForm& form, Collective collective,
                                const void* sendbuf, void* recvbuf, MPI_Count count,
                                MPI_Datatype type, MPI_Op op, MPI_Comm comm) noexcept {
    const Element element = element_of(op, type);
    const size_t bytes = bytes_of_reduction(count, element);
    if (bytes == 0) return std::nullopt;
    const NodeSite site = node_site(form, comm);
    if (site.declined()) return std::nullopt;
    const bool gets_result = collective == Collective::scan || site.rank != 0;
    if (gets_result ? are_refused(sendbuf, count, recvbuf, count, type)
                    : is_alias(sendbuf, recvbuf) ||
                          (sendbuf != MPI_IN_PLACE && offload::is_refused(sendbuf, count, type)))
        return std::nullopt;
    Operands what = operands(sendbuf, recvbuf, count, type, op, element);
    if (!gets_result) what.output = nullptr;
    return serve(form, site, comm, {collective, bytes, bytes},
                 Reduction(collective, what, element));
}

}  // namespace

std::optional<int> barrier(const CollectiveForm& form, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined()) return std::nullopt;
    return serve(form, site, comm, {Collective::barrier, 0, 0}, Barrier(),
                 [](NodeComm& node) noexcept {
                     kernels::Line nothing;
                     node.allreduce(nothing, 0, combine_nothing);
                     return MPI_SUCCESS;
                 });
}

std::optional<int> allreduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                             MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                             MPI_Comm comm) noexcept {
    const Element element = element_of(op, datatype);
    const size_t bytes = bytes_of_reduction(count, element);
    if (bytes == 0) return std::nullopt;
    const NodeSite site = node_site(form, comm);
    if (site.declined() || !is_ours_or_line(Collective::allreduce, bytes)) return std::nullopt;
    if (are_refused(sendbuf, count, recvbuf, count, datatype)) return std::nullopt;
    const Operands what = operands(sendbuf, recvbuf, count, datatype, op, element);
    return serve(form, site, comm, {Collective::allreduce, bytes, bytes},
                 Reduction(Collective::allreduce, what, element), [&](NodeComm& node) noexcept {
                     kernels::Line value;
                     element.copy(data_of(value, bytes), what.input, count);
                     node.allreduce(value, bytes, CombineInLines{what, bytes});
                     element.copy(recvbuf, data_of(value, bytes), count);
                     return MPI_SUCCESS;
                 });
}

std::optional<int> reduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                          MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                          MPI_Comm comm) noexcept {
    const Element element = element_of(op, datatype);
    const size_t bytes = bytes_of_reduction(count, element);
    if (bytes == 0) return std::nullopt;
    const NodeSite site = node_site(form, comm);
    if (site.declined() || !site.has(root) || !is_ours_or_line(Collective::reduce, bytes))
        return std::nullopt;
    const bool is_root = site.rank == root;
    if (are_refused_in_reduce(sendbuf, recvbuf, count, datatype, is_root)) return std::nullopt;
    Operands what = operands(sendbuf, recvbuf, count, datatype, op, element);
    if (!is_root) what.output = nullptr;
    return serve(form, site, comm, {Collective::reduce, bytes, bytes},
                 Reduction(Collective::reduce, what, element, root), [&](NodeComm& node) noexcept {
                     kernels::Line value;
                     element.copy(data_of(value, bytes), what.input, count);
                     node.reduce(value, bytes, root, CombineInLines{what, bytes});
                     if (is_root) element.copy(recvbuf, data_of(value, bytes), count);
                     return MPI_SUCCESS;
                 });
}

std::optional<int> reduce_scatter(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                                  offload::RankArray recvcounts, MPI_Datatype datatype, MPI_Op op,
                                  MPI_Comm comm) noexcept {
    if (recvcounts.missing()) return std::nullopt;
    const RankCounts counts(recvcounts);
    const NodeSite site = node_site(form, comm);
    if (site.declined() || counts.has_negative(site.ranks)) return std::nullopt;
    return reduce_scatter_on_node(form, sendbuf, recvbuf, counts, datatype, op, site, comm);
}

std::optional<int> reduce_scatter_block(const CollectiveForm& form, const void* sendbuf,
                                        void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                        MPI_Op op, MPI_Comm comm) noexcept {
    const NodeSite site = node_site(form, comm);
    if (site.declined() || recvcount <= 0 || recvcount > PTRDIFF_MAX / site.ranks)
        return std::nullopt;
    return reduce_scatter_on_node(form, sendbuf, recvbuf, RankCounts(recvcount), datatype, op, site,
                                  comm);
}

std::optional<int> scan(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                        MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) noexcept {
    return scan_on_node(form, Collective::scan, sendbuf, recvbuf, count, datatype, op, comm);
}

std::optional<int> exscan(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                          MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm) noexcept {
    return scan_on_node(form, Collective::exscan, sendbuf, recvbuf, count, datatype, op, comm);
}

}  // namespace vecmpi::pipeline::node
