// SPDX-License-Identifier: BSD-3-Clause
// Segmented Allreduce, Reduce and Reduce_scatter.

#include "kernels/api.hpp"
#include "segment_run.hpp"

namespace vecmpi::pipeline {

namespace {

// ---- Allreduce and Reduce -----------------------------------------------------------------------

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
    kernels::copy_bytes(recvbuf + before * extent, recvbuf, static_cast<size_t>(count * extent));
}

}  // namespace

int segmented_reduction(const CollectiveCall& call, unsigned n, const Operands& what) noexcept {
    const bool reduces_to_all = call.collective == Collective::allreduce;
    const Call issued = reduces_to_all ? Call::Iallreduce : Call::Ireduce;
    const offload::IssueFunction issue = reduces_to_all ? issue_iallreduce : issue_ireduce;
    count_segmented(call, static_cast<uint64_t>(what.count * offload::size_of(what.type)));
    return run_segments(n, [&](unsigned i, MPI_Request* request) noexcept {
        const Segment cut = segment(what.count, n, i);
        const ReduceArguments arguments{what.part(cut.first, cut.count), call.root, call.comm};
        offload::CallFacts facts = facts_of_segment(call.comm, cut.count, what.type);
        facts.sendbuf = arguments.what.input;
        if (reduces_to_all || call.is_root()) facts.recvbuf = arguments.what.output;
        facts.op = what.op;
        facts.reduces = true;
        facts.root = call.root;
        return offload::post(offload::make_operation(issued, issue, arguments, facts), request);
    });
}

int segmented_reduce_scatter(const CollectiveCall& call, unsigned n, const Operands& what,
                             const RankCounts& counts, bool in_place) noexcept {
    const int ranks = call.ranks();
    count_segmented(call, what.bytes());
    const Buffer<char> input = allocate<char>(what.bytes());
    const Buffer<int> recvcounts = allocate<int>(static_cast<size_t>(ranks) * segments_in_flight);
    if (!input || !recvcounts) return out_of_memory(call.comm);
    rearrange(static_cast<const char*>(what.input), input.get(), counts, ranks, n, what.extent);
    Operands rearranged = what;
    rearranged.input = input.get();
    const int rc =
        run_reduce_scatter(n, rearranged, counts, call.rank, ranks, recvcounts.get(), call.comm);
    if (rc == MPI_SUCCESS && in_place)
        leave_in_own_block(static_cast<char*>(what.output), counts, call.rank, what.extent);
    return rc;
}

}  // namespace vecmpi::pipeline
