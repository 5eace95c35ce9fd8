// SPDX-License-Identifier: BSD-3-Clause
// The segmented collectives. Each: 1. gather the facts, 2. decide, 3. post segments with a bounded
// number in flight,
// 4. complete. The order of segments is the same on all ranks, as MPI demands of collectives.
#include <algorithm>
#include <climits>
#include <cstring>

#include "calls.hpp"
#include "datatype/api.hpp"
#include "kernels/api.hpp"
#include "offload/api.hpp"
#include "segmented.hpp"
#include "segments.hpp"

namespace vecmpi::pipeline {

namespace {

unsigned decide(Segmented collective, uint64_t bytes, MPI_Count elements,
                const offload::CommTraits& traits, Decline& decline) noexcept {
    SegmentFacts facts;
    facts.collective = collective;
    facts.bytes = bytes;
    facts.elements = elements;
    facts.ranks = traits.size;
    // Only communicators as large as the world are known to span its nodes.
    int world = 0;
    real.Comm_size(MPI_COMM_WORLD, &world);
    facts.several_nodes = !offload::agreement().one_node && traits.size == world;
    Counter why{};
    const unsigned n = number_of_segments(facts, settings(), &why);
    if (n == 0) decline.note(why);
    return n;
}

// Posts segment 0..n-1 in order and completes them all; the first error is returned.
template <class PostSegment>
int run_segments(unsigned n, PostSegment post_segment) noexcept {
    MPI_Request in_flight[segments_in_flight];
    std::fill(in_flight, in_flight + segments_in_flight, MPI_REQUEST_NULL);
    int first_error = MPI_SUCCESS;
    const auto note = [&first_error](int rc) noexcept {
        if (first_error == MPI_SUCCESS) first_error = rc;
    };
    for (unsigned i = 0; i < n; ++i) {
        MPI_Request& request = in_flight[i % segments_in_flight];
        note(offload::wait_one(&request, MPI_STATUS_IGNORE));
        note(post_segment(i, &request));
    }
    for (unsigned i = 0; i < segments_in_flight; ++i)
        note(offload::wait_one(&in_flight[(n + i) % segments_in_flight], MPI_STATUS_IGNORE));
    count(Counter::segments_issued, n);
    return first_error;
}

offload::CallFacts collective_facts(MPI_Comm comm, MPI_Count count, MPI_Datatype type) noexcept {
    offload::CallFacts facts;
    facts.comm = comm;
    facts.count = count;
    facts.type = type;
    facts.collective = true;
    return facts;
}

struct ReduceArguments {
    const void* sendbuf;
    void* recvbuf;
    int count;
    MPI_Datatype datatype;
    MPI_Op op;
    int root;
    MPI_Comm comm;
};

int issue_iallreduce(const void* raw, MPI_Request* request) noexcept {
    const auto& a = *static_cast<const ReduceArguments*>(raw);
    return real.Iallreduce(a.sendbuf, a.recvbuf, a.count, a.datatype, a.op, a.comm, request);
}

int issue_ireduce(const void* raw, MPI_Request* request) noexcept {
    const auto& a = *static_cast<const ReduceArguments*>(raw);
    return real.Ireduce(a.sendbuf, a.recvbuf, a.count, a.datatype, a.op, a.root, a.comm, request);
}

// Allreduce and Reduce: the vector is cut between elements, whatever the type and op.
int run_reduction(unsigned n, Call call, offload::IssueFunction issue, const ReduceArguments& whole,
                  MPI_Count count, MPI_Count extent) noexcept {
    return run_segments(n, [&](unsigned i, MPI_Request* request) noexcept {
        const Segment part = segment(count, n, i);
        ReduceArguments arguments = whole;
        arguments.sendbuf = advanced(whole.sendbuf, part.first * extent);
        arguments.recvbuf = advanced(whole.recvbuf, part.first * extent);
        arguments.count = static_cast<int>(part.count);
        offload::CallFacts facts = collective_facts(whole.comm, part.count, whole.datatype);
        facts.op = whole.op;
        facts.reduces = true;
        facts.root = whole.root;
        return offload::post(offload::make_operation(call, issue, arguments, facts), request);
    });
}

bool segment_fits_int(MPI_Count elements, unsigned n) noexcept {
    return segment(elements, n, 0).count <= INT_MAX;
}

// ---- Bcast: cut between bytes of the packed vector, since only its size is the same on all ranks

struct BcastArguments {
    void* buffer;
    int bytes;
    int root;
    MPI_Comm comm;
};

int issue_ibcast(const void* raw, MPI_Request* request) noexcept {
    const auto& a = *static_cast<const BcastArguments*>(raw);
    return real.Ibcast(a.buffer, a.bytes, MPI_BYTE, a.root, a.comm, request);
}

int bcast_bytes(unsigned n, void* buffer, MPI_Count bytes, int root, MPI_Comm comm) noexcept {
    return run_segments(n, [&](unsigned i, MPI_Request* request) noexcept {
        const Segment part = segment(bytes, n, i);
        const BcastArguments arguments{advanced(buffer, part.first), static_cast<int>(part.count),
                                       root, comm};
        return offload::post(offload::make_operation(Call::Ibcast, issue_ibcast, arguments,
                                                     collective_facts(comm, part.count, MPI_BYTE)),
                             request);
    });
}

// ---- Allgather: segment i holds the i-th part of every rank's block -----------------------------

struct AllgatherArguments {
    const void* sendbuf;
    MPI_Count sendbytes;
    void* recvbuf;
    const MPI_Count* recvcounts;
    const MPI_Aint* displacements;
    MPI_Comm comm;
};

int issue_iallgatherv(const void* raw, MPI_Request* request) noexcept {
    const auto& a = *static_cast<const AllgatherArguments*>(raw);
    return real.Iallgatherv_c(a.sendbuf, a.sendbytes, MPI_BYTE, a.recvbuf, a.recvcounts,
                              a.displacements, MPI_BYTE, a.comm, request);
}

// send and receive buffers hold packed bytes; the arrays live until the last segment is complete.
int allgather_bytes(unsigned n, const void* send, void* receive, MPI_Count block, int ranks,
                    MPI_Comm comm) noexcept {
    const auto p = static_cast<size_t>(ranks);
    Buffer<MPI_Count> counts = allocate<MPI_Count>(p * segments_in_flight);
    Buffer<MPI_Aint> displacements = allocate<MPI_Aint>(p * segments_in_flight);
    if (!counts || !displacements) return out_of_memory(comm);
    return run_segments(n, [&](unsigned i, MPI_Request* request) noexcept {
        const Segment part = segment(block, n, i);
        // run_segments has completed the segment that used these before.
        MPI_Count* segment_counts = counts.get() + i % segments_in_flight * p;
        MPI_Aint* segment_places = displacements.get() + i % segments_in_flight * p;
        for (size_t r = 0; r < p; ++r) {
            segment_counts[r] = part.count;
            segment_places[r] = static_cast<MPI_Aint>(r) * block + part.first;
        }
        const AllgatherArguments arguments{
            advanced(send, part.first), part.count, receive, segment_counts, segment_places, comm};
        offload::CallFacts facts = collective_facts(comm, part.count, MPI_BYTE);
        facts.vector_form = true;
        return offload::post(
            offload::make_operation(Call::Iallgatherv, issue_iallgatherv, arguments, facts),
            request);
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

// Blocks of the vector, one a rank.
class CountsOfRanks {
  public:
    CountsOfRanks(const int recvcounts[], MPI_Count block) noexcept
        : counts_(recvcounts), block_(block) {}
    MPI_Count of(int rank) const noexcept { return counts_ ? counts_[rank] : block_; }
    MPI_Count total(int ranks) const noexcept {
        MPI_Count sum = 0;
        for (int r = 0; r < ranks; ++r) sum += of(r);
        return sum;
    }
    MPI_Count largest(int ranks) const noexcept {
        MPI_Count most = 0;
        for (int r = 0; r < ranks; ++r) most = std::max(most, of(r));
        return most;
    }

  private:
    const int* counts_;
    MPI_Count block_;
};

// Segment i of every block, one after the other.
void rearrange(const char* input, char* output, const CountsOfRanks& blocks, int ranks, unsigned n,
               MPI_Count extent) noexcept {
    const auto element = static_cast<size_t>(extent);
    for (unsigned i = 0; i < n; ++i) {
        const char* block = input;
        for (int r = 0; r < ranks; ++r) {
            const Segment part = segment(blocks.of(r), n, i);
            const size_t bytes = static_cast<size_t>(part.count) * element;
            kernels::copy_bytes(output, block + static_cast<size_t>(part.first) * element, bytes);
            output += bytes;
            block += static_cast<size_t>(blocks.of(r)) * element;
        }
    }
}

}  // namespace

std::optional<int> segmented_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                       Decline& decline) noexcept {
    const auto traits = traits_to_cut(comm, datatype, count, decline);
    if (!traits || sendbuf == recvbuf) return std::nullopt;
    if (offload::is_refused(sendbuf, count, datatype) ||
        offload::is_refused_output(recvbuf, count, datatype))
        return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(datatype);
    const unsigned n = decide(Segmented::allreduce, static_cast<uint64_t>(count * shape.bytes),
                              count, *traits, decline);
    if (n == 0 || !segment_fits_int(count, n)) return std::nullopt;
    count_call(static_cast<size_t>(Call::Allreduce), Path::segmented,
               static_cast<uint64_t>(count * shape.bytes));
    const ReduceArguments whole{sendbuf, recvbuf, 0, datatype, op, 0, comm};
    return run_reduction(n, Call::Iallreduce, issue_iallreduce, whole, count, shape.extent);
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
    const unsigned n = decide(Segmented::reduce, static_cast<uint64_t>(count * shape.bytes), count,
                              *traits, decline);
    if (n == 0 || !segment_fits_int(count, n)) return std::nullopt;
    count_call(static_cast<size_t>(Call::Reduce), Path::segmented,
               static_cast<uint64_t>(count * shape.bytes));
    const ReduceArguments whole{sendbuf, recvbuf, 0, datatype, op, root, comm};
    return run_reduction(n, Call::Ireduce, issue_ireduce, whole, count, shape.extent);
}

std::optional<int> segmented_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
                                   MPI_Comm comm, Decline& decline) noexcept {
    const auto traits = traits_to_cut(comm, datatype, count, decline);
    if (!traits || root < 0 || root >= traits->size) return std::nullopt;
    if (offload::is_refused_output(buffer, count, datatype)) return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(datatype);
    const MPI_Count bytes = count * shape.bytes;
    const unsigned n =
        decide(Segmented::bcast, static_cast<uint64_t>(bytes), bytes, *traits, decline);
    if (n == 0 || !segment_fits_int(bytes, n) || !real.Pack_c) return std::nullopt;
    count_call(static_cast<size_t>(Call::Bcast), Path::segmented, static_cast<uint64_t>(bytes));
    if (shape.builtin) return bcast_bytes(n, buffer, bytes, root, comm);
    Buffer<char> packed = allocate<char>(static_cast<size_t>(bytes));
    if (!packed) return out_of_memory(comm);
    const datatype::TypeInUse in_use(datatype);
    int rank = 0;
    real.Comm_rank(comm, &rank);
    if (rank == root) {
        const int rc =
            datatype::PackableBuffer(buffer, count, datatype).pack(packed.get(), bytes, comm);
        return rc != MPI_SUCCESS ? rc : bcast_bytes(n, packed.get(), bytes, root, comm);
    }
    const int rc = bcast_bytes(n, packed.get(), bytes, root, comm);
    return rc != MPI_SUCCESS ? rc
                             : datatype::PackableBuffer(buffer, count, datatype)
                                   .unpack(packed.get(), bytes, comm);
}

std::optional<int> segmented_allgather(const void* sendbuf, MPI_Count sendcount,
                                       MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                       MPI_Datatype recvtype, MPI_Comm comm,
                                       Decline& decline) noexcept {
    const auto traits = traits_to_cut(comm, recvtype, recvcount, decline);
    const bool in_place = sendbuf == MPI_IN_PLACE;
    if (!traits || (!in_place && !library::is_type_handle(sendtype)) || !real.Iallgatherv_c)
        return std::nullopt;
    if (offload::is_refused_output(recvbuf, recvcount, recvtype) ||
        (!in_place && (offload::is_refused(sendbuf, sendcount, sendtype) ||
                       may_be_refused(*traits, sendtype, comm))))
        return std::nullopt;
    const offload::TypeShape receive_shape = offload::shape_of(recvtype);
    const MPI_Count block = recvcount * receive_shape.bytes;
    const unsigned n =
        decide(Segmented::allgather, static_cast<uint64_t>(block), block, *traits, decline);
    if (n == 0) return std::nullopt;
    count_call(static_cast<size_t>(Call::Allgather), Path::segmented, static_cast<uint64_t>(block));
    // 1. The send side as packed bytes. 2. Gather into packed bytes. 3. Unpack where the type has
    // another layout.
    const datatype::TypeInUse receive_in_use(recvtype);
    const int ranks = traits->size;
    int rank = 0;
    real.Comm_rank(comm, &rank);
    Buffer<char> packed_send, packed_receive;
    const void* send = sendbuf;
    void* receive = recvbuf;
    int rc = MPI_SUCCESS;
    if (!receive_shape.builtin) {
        packed_receive = allocate<char>(static_cast<size_t>(block * ranks));
        receive = packed_receive.get();
        if (!receive) return out_of_memory(comm);
        if (in_place)
            rc =
                datatype::PackableBuffer(advanced(recvbuf, rank * recvcount * receive_shape.extent),
                                         recvcount, recvtype)
                    .pack(packed_receive.get() + rank * block, block, comm);
    }
    if (!in_place && !offload::shape_of(sendtype).builtin) {
        packed_send = allocate<char>(static_cast<size_t>(block));
        send = packed_send.get();
        if (!send) return out_of_memory(comm);
        rc = datatype::PackableBuffer(sendbuf, sendcount, sendtype)
                 .pack(packed_send.get(), block, comm);
    }
    if (rc != MPI_SUCCESS) return rc;
    rc = allgather_bytes(n, send, receive, block, ranks, comm);
    if (rc != MPI_SUCCESS || receive_shape.builtin) return rc;
    return datatype::PackableBuffer(recvbuf, recvcount * ranks, recvtype)
        .unpack(packed_receive.get(), block * ranks, comm);
}

namespace {

// In place the standard puts the result at the start and says nothing of the rest; MPICH leaves it
// in this rank's block of the input too, and programs look there (MPICH's cxx/coll/redscatblk).
void leave_in_own_block(char* recvbuf, const CountsOfRanks& blocks, int rank,
                        MPI_Count extent) noexcept {
    const MPI_Count before = blocks.total(rank), count = blocks.of(rank);
    if (before < count) return;  // it would overwrite the result
    std::memcpy(recvbuf + before * extent, recvbuf, static_cast<size_t>(count * extent));
}

}  // namespace

std::optional<int> segmented_reduce_scatter(const void* sendbuf, void* recvbuf,
                                            const int recvcounts[], MPI_Count block,
                                            MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                            Decline& decline) noexcept {
    const auto traits = traits_to_cut(comm, datatype, block, decline);
    if (!traits || sendbuf == recvbuf) return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(datatype);
    if (!shape.builtin) {
        decline.note(Counter::decline_type);
        return std::nullopt;
    }
    const CountsOfRanks blocks(recvcounts, block);
    const int ranks = traits->size;
    for (int r = 0; r < ranks; ++r)
        if (blocks.of(r) < 0) return std::nullopt;  // the library's own error
    const MPI_Count total = blocks.total(ranks);
    const auto bytes = static_cast<uint64_t>(total * shape.extent);
    int rank = 0;
    real.Comm_rank(comm, &rank);
    if (offload::is_refused(sendbuf, total, datatype) ||
        offload::is_refused_output(recvbuf, blocks.of(rank), datatype))
        return std::nullopt;
    const unsigned n =
        decide(Segmented::reduce_scatter, bytes, blocks.largest(ranks), *traits, decline);
    if (n == 0 || blocks.largest(ranks) > INT_MAX) return std::nullopt;
    count_call(static_cast<size_t>(Call::Reduce_scatter), Path::segmented, bytes);
    Buffer<char> input = allocate<char>(bytes);
    Buffer<int> counts = allocate<int>(static_cast<size_t>(ranks) * segments_in_flight);
    if (!input || !counts) return out_of_memory(comm);
    const void* whole = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    rearrange(static_cast<const char*>(whole), input.get(), blocks, ranks, n, shape.extent);
    const char* next_input = input.get();
    const int rc = run_segments(n, [&](unsigned i, MPI_Request* request) noexcept {
        int* segment_counts =
            counts.get() + static_cast<size_t>(i % segments_in_flight) * static_cast<size_t>(ranks);
        const Segment mine = segment(blocks.of(rank), n, i);
        const ReduceScatterArguments arguments{
            next_input, advanced(recvbuf, mine.first * shape.extent), segment_counts, datatype, op,
            comm};
        for (int r = 0; r < ranks; ++r) {
            segment_counts[r] = static_cast<int>(segment(blocks.of(r), n, i).count);
            next_input += segment_counts[r] * shape.extent;
        }
        offload::CallFacts facts = collective_facts(comm, mine.count, datatype);
        facts.vector_form = true;
        return offload::post(
            offload::make_operation(Call::Ireduce_scatter, issue_ireduce_scatter, arguments, facts),
            request);
    });
    if (rc == MPI_SUCCESS && sendbuf == MPI_IN_PLACE)
        leave_in_own_block(static_cast<char*>(recvbuf), blocks, rank, shape.extent);
    return rc;
}

}  // namespace vecmpi::pipeline
