// SPDX-License-Identifier: BSD-3-Clause
// Segmented Allreduce, Reduce and Reduce_scatter.
#include <cstring>

#include "kernels/api.hpp"
#include "segment_run.hpp"

namespace vecmpi::pipeline {

namespace {

// ---- Allreduce and Reduce: cut between elements, whatever the type and op -----------------------

struct ReduceArguments {
    Operands what;  // the input may be MPI_IN_PLACE
    int root;
    MPI_Comm comm;
};

int issue_iallreduce(const void* raw, MPI_Request* request) noexcept {
    const auto& [what, root, comm] = *static_cast<const ReduceArguments*>(raw);
    return real.Iallreduce(what.input, what.output, static_cast<int>(what.count), what.type,
                           what.op, comm, request);
}

int issue_ireduce(const void* raw, MPI_Request* request) noexcept {
    const auto& [what, root, comm] = *static_cast<const ReduceArguments*>(raw);
    return real.Ireduce(what.input, what.output, static_cast<int>(what.count), what.type, what.op,
                        root, comm, request);
}

int run_reduction(unsigned n, Call call, offload::IssueFunction issue,
                  const ReduceArguments& whole) noexcept {
    return run_segments(n, [&](unsigned i, MPI_Request* request) noexcept {
        const Segment cut = segment(whole.what.count, n, i);
        const ReduceArguments arguments{whole.what.part(cut.first, cut.count), whole.root,
                                        whole.comm};
        offload::CallFacts facts = facts_of_segment(whole.comm, cut.count, whole.what.type);
        facts.op = whole.what.op;
        facts.reduces = true;
        facts.root = whole.root;
        return offload::post(offload::make_operation(call, issue, arguments, facts), request);
    });
}

// ---- Reduce_scatter: the input is rearranged so that each segment is contiguous -----------------

struct ReduceScatterArguments {
    const void* sendbuf;
    void* recvbuf;
    const int* recvcounts;
    MPI_Datatype datatype;
    MPI_Op op;
    MPI_Comm comm;
};

int issue_ireduce_scatter(const void* raw, MPI_Request* request) noexcept {
    const auto& a = *static_cast<const ReduceScatterArguments*>(raw);
    return real.Ireduce_scatter(a.sendbuf, a.recvbuf, a.recvcounts, a.datatype, a.op, a.comm,
                                request);
}

// Segment i of every block, one after the other.
void rearrange(const char* input, char* output, const RankCounts& blocks, int ranks, unsigned n,
               MPI_Count extent) noexcept {
    for (unsigned i = 0; i < n; ++i) {
        const char* block = input;
        for (int r = 0; r < ranks; ++r) {
            const Segment part = segment(blocks[r], n, i);
            const auto bytes = static_cast<size_t>(part.count * extent);
            kernels::copy_bytes(output, block + part.first * extent, bytes);
            output += bytes;
            block += blocks[r] * extent;
        }
    }
}

// what: of the whole vector, rearranged. recvcounts: memory for the counts of all segments in
// flight, `ranks` each.
int run_reduce_scatter(unsigned n, const Operands& what, const RankCounts& blocks, int rank,
                       int ranks, int* recvcounts, MPI_Comm comm) noexcept {
    int64_t begins = 0;  // of the segment, in the input
    return run_segments(n, [&](unsigned i, MPI_Request* request) noexcept {
        int* const counts =
            recvcounts + size_t{i % segments_in_flight} * static_cast<size_t>(ranks);
        const Segment mine = segment(blocks[rank], n, i);
        const ReduceScatterArguments arguments{
            what.input_at(begins), what.output_at(mine.first), counts, what.type, what.op, comm};
        for (int r = 0; r < ranks; ++r) {
            counts[r] = static_cast<int>(segment(blocks[r], n, i).count);
            begins += counts[r];
        }
        offload::CallFacts facts = facts_of_segment(comm, mine.count, what.type);
        facts.vector_form = true;
        return offload::post(
            offload::make_operation(Call::Ireduce_scatter, issue_ireduce_scatter, arguments, facts),
            request);
    });
}

// In place the standard puts the result at the start and says nothing of the rest. MPICH leaves it
// in this rank's block of the input too, and programs look there (MPICH's cxx/coll/redscatblk).
void leave_in_own_block(char* recvbuf, const RankCounts& blocks, int rank,
                        MPI_Count extent) noexcept {
    const MPI_Count before = blocks.total(rank), count = blocks[rank];
    if (before < count) return;  // it would overwrite the result
    std::memcpy(recvbuf + before * extent, recvbuf, static_cast<size_t>(count * extent));
}

}  // namespace

std::optional<int> segmented_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                       Decline& decline) noexcept {
    const auto traits = traits_to_cut(comm, datatype, count, decline);
    if (!traits || are_refused(sendbuf, count, recvbuf, count, datatype)) return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(datatype);
    const auto bytes = static_cast<uint64_t>(count * shape.bytes);
    const unsigned n = segments_of_call(Collective::allreduce, bytes, count, *traits, decline);
    if (n == 0 || !segment_fits_int(count, n)) return std::nullopt;
    count_call(static_cast<size_t>(Call::Allreduce), Path::segmented, bytes);
    return run_reduction(n, Call::Iallreduce, issue_iallreduce,
                         {{sendbuf, recvbuf, count, datatype, op, shape.extent}, 0, comm});
}

std::optional<int> segmented_reduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                                    MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                                    Decline& decline) noexcept {
    const auto traits = traits_to_cut(comm, datatype, count, decline);
    if (!traits || root < 0 || root >= traits->size) return std::nullopt;
    int rank = 0;
    real.Comm_rank(comm, &rank);
    if (offload::is_refused(sendbuf, count, datatype) ||
        (rank == root && offload::is_refused_output(recvbuf, count, datatype)))
        return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(datatype);
    const auto bytes = static_cast<uint64_t>(count * shape.bytes);
    const unsigned n = segments_of_call(Collective::reduce, bytes, count, *traits, decline);
    if (n == 0 || !segment_fits_int(count, n)) return std::nullopt;
    count_call(static_cast<size_t>(Call::Reduce), Path::segmented, bytes);
    return run_reduction(n, Call::Ireduce, issue_ireduce,
                         {{sendbuf, recvbuf, count, datatype, op, shape.extent}, root, comm});
}

std::optional<int> segmented_reduce_scatter(const void* sendbuf, void* recvbuf,
                                            const RankCounts& counts, MPI_Datatype datatype,
                                            MPI_Op op, MPI_Comm comm, Decline& decline) noexcept {
    const auto traits = traits_to_cut(comm, datatype, 0, decline);
    if (!traits) return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(datatype);
    if (!shape.builtin) {
        decline.note(Counter::decline_type);
        return std::nullopt;
    }
    const int ranks = traits->size;
    if (counts.has_negative(ranks)) return std::nullopt;  // the library's own error
    const MPI_Count total = counts.total(ranks), most = counts.largest(ranks);
    const auto bytes = static_cast<uint64_t>(total * shape.extent);
    int rank = 0;
    real.Comm_rank(comm, &rank);
    if (are_refused(sendbuf, total, recvbuf, counts[rank], datatype)) return std::nullopt;
    const unsigned n = segments_of_call(Collective::reduce_scatter, bytes, most, *traits, decline);
    if (n == 0 || most > INT_MAX) return std::nullopt;
    count_call(static_cast<size_t>(Call::Reduce_scatter), Path::segmented, bytes);
    const Buffer<char> input = allocate<char>(bytes);
    const Buffer<int> recvcounts = allocate<int>(static_cast<size_t>(ranks) * segments_in_flight);
    if (!input || !recvcounts) return out_of_memory(comm);
    const bool in_place = sendbuf == MPI_IN_PLACE;
    rearrange(static_cast<const char*>(in_place ? recvbuf : sendbuf), input.get(), counts, ranks, n,
              shape.extent);
    const int rc = run_reduce_scatter(n, {input.get(), recvbuf, total, datatype, op, shape.extent},
                                      counts, rank, ranks, recvcounts.get(), comm);
    if (rc == MPI_SUCCESS && in_place)
        leave_in_own_block(static_cast<char*>(recvbuf), counts, rank, shape.extent);
    return rc;
}

}  // namespace vecmpi::pipeline
