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
        return offload::post(offload::make_operation(Call::Ibcast, issue_ibcast, arguments,
                                                     facts_of_segment(comm, part.count, MPI_BYTE)),
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

std::optional<int> segmented_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root,
                                   MPI_Comm comm, Decline& decline) noexcept {
    const auto traits = traits_to_cut(comm, datatype, count, decline);
    if (!traits || root < 0 || root >= traits->size) return std::nullopt;
    if (offload::is_refused_output(buffer, count, datatype)) return std::nullopt;
    const datatype::TypeInUse in_use(datatype);
    PackedBuffer data(buffer, count, datatype, comm);
    const auto bytes = static_cast<uint64_t>(data.bytes());
    const unsigned n = segments_of_call(Collective::bcast, bytes, data.bytes(), *traits, decline);
    if (n == 0 || !segment_fits_int(data.bytes(), n)) return std::nullopt;
    count_call(static_cast<size_t>(Call::Bcast), Path::segmented, bytes);
    unsigned char* const place = data.place();
    if (place == nullptr) return out_of_memory(comm);
    int rank = 0;
    real.Comm_rank(comm, &rank);
    int rc = rank == root ? data.pack() : MPI_SUCCESS;
    if (rc == MPI_SUCCESS) rc = bcast_bytes(n, place, data.bytes(), root, comm);
    return rc == MPI_SUCCESS && rank != root ? data.unpack() : rc;
}

// 1. The own block, packed; in place that is in its place of all blocks. 2. Gather. 3. Unpack.
std::optional<int> segmented_allgather(const void* sendbuf, MPI_Count sendcount,
                                       MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                       MPI_Datatype recvtype, MPI_Comm comm,
                                       Decline& decline) noexcept {
    const auto traits = traits_to_cut(comm, recvtype, recvcount, decline);
    const bool in_place = sendbuf == MPI_IN_PLACE;
    if (!traits || (!in_place && !library::is_type_handle(sendtype)) || !real.Iallgatherv_c)
        return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(recvtype);
    const MPI_Count block = recvcount * shape.bytes;
    if (offload::is_refused_output(recvbuf, recvcount, recvtype)) return std::nullopt;
    if (!in_place && (offload::is_refused(sendbuf, sendcount, sendtype) ||
                      may_be_refused(*traits, sendtype, comm) ||
                      sendcount * offload::size_of(sendtype) != block))
        return std::nullopt;
    const auto bytes = static_cast<uint64_t>(block);
    const unsigned n = segments_of_call(Collective::allgather, bytes, block, *traits, decline);
    if (n == 0) return std::nullopt;
    count_call(static_cast<size_t>(Call::Allgather), Path::segmented, bytes);
    int rank = 0;
    real.Comm_rank(comm, &rank);
    const datatype::TypeInUse receive_in_use(recvtype), send_in_use(in_place ? recvtype : sendtype);
    PackedBuffer all(recvbuf, recvcount * traits->size, recvtype, comm);
    const void* const own_place = advanced(recvbuf, rank * recvcount * shape.extent);
    PackedBuffer own = in_place ? PackedBuffer(own_place, recvcount, recvtype, comm)
                                : PackedBuffer(sendbuf, sendcount, sendtype, comm);
    unsigned char* const receive = all.place();
    const void* const send = in_place ? MPI_IN_PLACE : own.place();
    if (receive == nullptr || send == nullptr) return out_of_memory(comm);
    int rc = MPI_SUCCESS;
    if (!in_place)
        rc = own.pack();
    else if (!own.is_dense())
        rc = own.pack_to(receive + rank * block);
    if (rc == MPI_SUCCESS) rc = allgather_bytes(n, send, receive, block, traits->size, comm);
    return rc == MPI_SUCCESS ? all.unpack() : rc;
}

}  // namespace vecmpi::pipeline
