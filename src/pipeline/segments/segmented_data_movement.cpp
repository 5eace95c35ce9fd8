// SPDX-License-Identifier: BSD-3-Clause
// Segmented Bcast and Allgather: cut between bytes of the packed vector, since only their number is
// the same on all ranks.
#include "datatype/api.hpp"
#include "segment_run.hpp"

namespace vecmpi::pipeline {

namespace {

using datatype::PackedBuffer;

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
        offload::CallFacts facts = facts_of_segment(comm, part.count, MPI_BYTE);
        facts.sendbuf = arguments.buffer;
        return offload::post(offload::make_operation(Call::Ibcast, issue_ibcast, arguments, facts),
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

// The buffers hold packed bytes. send may be MPI_IN_PLACE.
int allgather_bytes(unsigned n, const void* send, void* receive, MPI_Count block, int ranks,
                    MPI_Comm comm) noexcept {
    const auto p = static_cast<size_t>(ranks);
    const Buffer<MPI_Count> counts = allocate<MPI_Count>(p * segments_in_flight);
    const Buffer<MPI_Aint> displacements = allocate<MPI_Aint>(p * segments_in_flight);
    if (!counts || !displacements) return out_of_memory(comm);
    return run_segments(n, [&](unsigned i, MPI_Request* request) noexcept {
        const Segment part = segment(block, n, i);
        MPI_Count* const segment_counts = counts.get() + i % segments_in_flight * p;
        MPI_Aint* const segment_places = displacements.get() + i % segments_in_flight * p;
        for (size_t r = 0; r < p; ++r) {
            segment_counts[r] = part.count;
            segment_places[r] = static_cast<MPI_Aint>(r) * block + part.first;
        }
        const AllgatherArguments arguments{
            advanced(send, part.first), part.count, receive, segment_counts, segment_places, comm};
        offload::CallFacts facts = facts_of_segment(comm, part.count, MPI_BYTE);
        facts.vector_form = true;
        return offload::post(
            offload::make_operation(Call::Iallgatherv, issue_iallgatherv, arguments, facts),
            request);
    });
}

}  // namespace

int segmented_bcast(const CollectiveCall& call, unsigned n, void* buffer, MPI_Count count,
                    MPI_Datatype type) noexcept {
    const datatype::TypeInUse in_use(type);
    PackedBuffer data(buffer, count, type, call.comm);
    count_segmented(call, static_cast<uint64_t>(data.bytes()));
    unsigned char* const place = data.place();
    if (place == nullptr) return out_of_memory(call.comm);
    int rc = call.is_root() ? data.pack() : MPI_SUCCESS;
    if (rc == MPI_SUCCESS) rc = bcast_bytes(n, place, data.bytes(), call.root, call.comm);
    return rc == MPI_SUCCESS && !call.is_root() ? data.unpack() : rc;
}

// 1. The own block, packed; in place that is in its place of all blocks. 2. Gather. 3. Unpack.
int segmented_allgather(const CollectiveCall& call, unsigned n, const BlockSide& given,
                        const GatheredVector& gathered) noexcept {
    const bool in_place = given.blocks == 0;
    const MPI_Count count = gathered.counts[0], block = gathered.block_bytes(0);
    count_segmented(call, static_cast<uint64_t>(block));
    const datatype::TypeInUse receive_in_use(gathered.type),
        send_in_use(in_place ? gathered.type : given.type);
    PackedBuffer all(gathered.buffer, count * gathered.ranks, gathered.type, call.comm);
    PackedBuffer own =
        in_place ? PackedBuffer(gathered.place_of(call.rank), count, gathered.type, call.comm)
                 : PackedBuffer(given.buffer, given.count, given.type, call.comm);
    unsigned char* const receive = all.place();
    const void* const send = in_place ? MPI_IN_PLACE : own.place();
    if (receive == nullptr || send == nullptr) return out_of_memory(call.comm);
    int rc = MPI_SUCCESS;
    if (!in_place)
        rc = own.pack();
    else if (!all.is_dense())
        rc = own.pack_to(receive + call.rank * block);
    if (rc == MPI_SUCCESS) rc = allgather_bytes(n, send, receive, block, gathered.ranks, call.comm);
    return rc == MPI_SUCCESS ? all.unpack() : rc;
}

}  // namespace vecmpi::pipeline
