// SPDX-License-Identifier: BSD-3-Clause
// Bcast, Allgather and Alltoall as schedules. They move the bytes of the packed vector: only their
// number is the same on all ranks.
#include <new>

#include "buffers_of_type.hpp"
#include "pipeline/block_side.hpp"
#include "scheduled_collectives.hpp"

namespace vecmpi::pipeline {

namespace {

// Where the blocks of an Allgather lie. Displacements are each rank's own.
struct Gathered {
    void* recvbuf;
    MPI_Datatype type;
    offload::TypeShape shape;
    RankCounts counts;          // elements of the type
    offload::RankArray displs;  // likewise; missing: one block behind the other
    Blocks blocks;              // in bytes of the packed vector

    int64_t total() const noexcept {
        return blocks.empty() ? 0 : blocks.back().first + blocks.back().count;
    }
    MPI_Count displacement(int rank) const noexcept {
        return displs.missing() ? rank * counts[rank] : displs[rank];
    }
    void* place_of(int rank) const noexcept {
        return advanced(recvbuf, displacement(rank) * shape.extent);
    }
};

// Where the packed vector would begin behind recvbuf, if the blocks lie there as they do in it.
// Messages hold several blocks, and the schedule must not rest on displacements.
std::optional<MPI_Count> begin_of_dense(const Gathered& gathered) noexcept {
    std::optional<MPI_Count> begin;
    for (int r = 0; r < static_cast<int>(gathered.blocks.size()); ++r) {
        if (gathered.counts[r] == 0) continue;
        const MPI_Count first = gathered.displacement(r) * gathered.shape.extent -
                                gathered.blocks[static_cast<size_t>(r)].first;
        if (begin && *begin != first) return std::nullopt;
        begin = first;
    }
    return begin;
}

// What this rank gives.
struct Given {
    const void* buffer;
    MPI_Count count;
    MPI_Datatype type;
    bool in_place;
};

// 1. The own block is packed to its place. 2. All others are unpacked.
void gather_packed(const CollectiveForm& form, const Offer& offer, const Gathered& gathered,
                   const Given& given, PreparedCollective& prepared) {
    const int me = offer.comm->rank();
    const auto first_of = [&](int r) { return gathered.blocks[static_cast<size_t>(r)].first; };
    const BuffersOfType received(form, offer, gathered.type, prepared);
    prepared.packed_bytes = static_cast<size_t>(gathered.total());
    if (given.in_place) {
        prepared.packed_before.push_back(
            {received.at(gathered.place_of(me), gathered.counts[me]), first_of(me)});
    } else {
        const BuffersOfType sent(form, offer, given.type, prepared);
        prepared.packed_before.push_back({sent.at(given.buffer, given.count), first_of(me)});
    }
    for (int r = 0; r < static_cast<int>(gathered.blocks.size()); ++r)
        if (gathered.counts[r] != 0 && !(r == me && given.in_place))
            prepared.unpacked_after.push_back(
                {received.at(gathered.place_of(r), gathered.counts[r]), first_of(r)});
}

// The library's to refuse, or its error: this rank must give as many bytes as its block has.
bool is_refused(const Given& given, const Gathered& gathered, const offload::CommTraits& traits,
                MPI_Comm comm, int rank) noexcept {
    if (given.in_place) return false;
    return given.count < 0 || !library::is_type_handle(given.type) ||
           offload::is_refused(given.buffer, given.count, given.type) ||
           may_be_refused(traits, given.type, comm) ||
           given.count * offload::size_of(given.type) !=
               gathered.blocks[static_cast<size_t>(rank)].count;
}

std::optional<int> run_allgather(const CollectiveForm& form, const Given& given,
                                 const Gathered& gathered, const offload::CommTraits& traits,
                                 MPI_Comm comm, Decline& decline) noexcept {
    if (!real.Pack_c) return std::nullopt;
    int rank = 0;
    real.Comm_rank(comm, &rank);
    if (is_refused(given, gathered, traits, comm, rank)) return std::nullopt;
    const auto part = static_cast<uint64_t>(gathered.total() / traits.size);
    if (!is_worth_a_look(Collective::allgather, part, decline)) return std::nullopt;
    auto offer = offer_schedule(form, {Collective::allgather, part, largest_block(gathered.blocks)},
                                comm, traits, decline);
    if (!offer) return std::nullopt;
    const datatype::TypeInUse receive_in_use(gathered.type),
        send_in_use(given.in_place ? gathered.type : given.type);
    PreparedCollective prepared;
    const auto begin = begin_of_dense(gathered);
    try {
        if (begin && gathered.shape.builtin &&
            (given.in_place || library::is_builtin_type(given.type))) {
            prepared.operands.output = advanced(gathered.recvbuf, *begin);
            prepared.operands.input = given.in_place ? prepared.operands.output : given.buffer;
        } else {
            gather_packed(form, *offer, gathered, given, prepared);
        }
    } catch (const std::bad_alloc&) {
        return out_of_memory(comm);
    }
    offer->request.blocks = &gathered.blocks;
    offer->request.in_place = given.in_place || prepared.packed_bytes != 0;
    return run_offer(form, *offer, std::move(prepared), static_cast<uint64_t>(gathered.total()),
                     comm);
}

}  // namespace

std::optional<int> scheduled_bcast(const CollectiveForm& form, void* buffer, MPI_Count count,
                                   MPI_Datatype type, int root, MPI_Comm comm,
                                   Decline& decline) noexcept {
    const auto traits = traits_to_schedule(form, Collective::bcast, comm, type, count, decline);
    if (!traits || root < 0 || root >= traits->size || !real.Pack_c) return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(type);
    const MPI_Count bytes = count * shape.bytes;
    const auto setting_bytes = static_cast<uint64_t>(bytes);
    if (!is_worth_a_look(Collective::bcast, setting_bytes, decline)) return std::nullopt;
    if (offload::is_refused_output(buffer, count, type)) return std::nullopt;
    auto offer =
        offer_schedule(form, {Collective::bcast, setting_bytes, bytes}, comm, *traits, decline);
    if (!offer) return std::nullopt;
    const datatype::TypeInUse in_use(type);
    offer->request.count = bytes;
    offer->request.root = root;
    offer->request.in_place = true;
    PreparedCollective prepared;
    prepared.operands.input = prepared.operands.output = buffer;
    try {
        if (!shape.builtin) {
            const BuffersOfType buffers(form, *offer, type, prepared);
            const bool is_root = offer->comm->rank() == root;
            prepared.packed_bytes = static_cast<size_t>(bytes);
            (is_root ? prepared.packed_before : prepared.unpacked_after)
                .push_back({buffers.at(buffer, count), 0});
        }
    } catch (const std::bad_alloc&) {
        return out_of_memory(comm);
    }
    return run_offer(form, *offer, std::move(prepared), setting_bytes, comm);
}

std::optional<int> scheduled_allgather(const CollectiveForm& form, const void* sendbuf,
                                       MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                       MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                       Decline& decline) noexcept {
    const auto traits =
        traits_to_schedule(form, Collective::allgather, comm, recvtype, recvcount, decline);
    if (!traits || offload::is_refused_output(recvbuf, recvcount, recvtype)) return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(recvtype);
    const auto bytes = static_cast<uint64_t>(recvcount * shape.bytes);
    if (!is_worth_a_look(Collective::allgather, bytes, decline)) return std::nullopt;
    const RankCounts counts(recvcount);
    auto blocks = blocks_of(counts, traits->size, shape.bytes);
    if (!blocks) return std::nullopt;
    const offload::RankArray in_order(static_cast<const int*>(nullptr));
    return run_allgather(form, {sendbuf, sendcount, sendtype, sendbuf == MPI_IN_PLACE},
                         {recvbuf, recvtype, shape, counts, in_order, std::move(*blocks)}, *traits,
                         comm, decline);
}

std::optional<int> scheduled_allgatherv(const CollectiveForm& form, const void* sendbuf,
                                        MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                        offload::RankArray recvcounts, offload::RankArray displs,
                                        MPI_Datatype recvtype, MPI_Comm comm,
                                        Decline& decline) noexcept {
    const auto traits = traits_to_schedule(form, Collective::allgather, comm, recvtype, 0, decline);
    if (!traits || recvcounts.missing() || displs.missing()) return std::nullopt;
    const RankCounts counts(recvcounts);
    if (counts.has_negative(traits->size) ||
        offload::is_refused_output(recvbuf, counts.total(traits->size), recvtype))
        return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(recvtype);
    auto blocks = blocks_of(counts, traits->size, shape.bytes);
    if (!blocks) return std::nullopt;
    return run_allgather(form, {sendbuf, sendcount, sendtype, sendbuf == MPI_IN_PLACE},
                         {recvbuf, recvtype, shape, counts, displs, std::move(*blocks)}, *traits,
                         comm, decline);
}

namespace {

// The library's to refuse, or its error: as many bytes must go to each rank as come from it.
bool is_refused(const BlockSide& given, const BlockSide& taken, const offload::CommTraits& traits,
                MPI_Comm comm) noexcept {
    // Types of absolute addresses may lie anywhere behind MPI_BOTTOM.
    return is_aliased(given, taken, 0) || given.count < 0 ||
           given.count > PTRDIFF_MAX / given.blocks || !library::is_type_handle(given.type) ||
           given.is_refused_buffer() || may_be_refused(traits, given.type, comm) ||
           given.block_bytes() != taken.block_bytes();
}

// In the packed memory the output lies behind the input. In place they are one.
void exchange_packed(const CollectiveForm& form, const Offer& offer, const BlockSide* given,
                     const BlockSide& taken, PreparedCollective& prepared) {
    const MPI_Count bytes = taken.block_bytes() * taken.blocks;
    const BuffersOfType received(form, offer, taken.type, prepared);
    prepared.packed_output = given ? static_cast<size_t>(bytes) : 0;
    prepared.packed_bytes = prepared.packed_output + static_cast<size_t>(bytes);
    if (given) {
        const BuffersOfType sent(form, offer, given->type, prepared);
        prepared.packed_before.push_back({sent.at(given->buffer, given->elements()), 0});
    } else {
        prepared.packed_before.push_back({received.at(taken.buffer, taken.elements()), 0});
    }
    prepared.unpacked_after.push_back({received.at(taken.buffer, taken.elements()),
                                       static_cast<MPI_Count>(prepared.packed_output)});
}

}  // namespace

std::optional<int> scheduled_alltoall(const CollectiveForm& form, const void* sendbuf,
                                      MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                      Decline& decline) noexcept {
    const auto traits =
        traits_to_schedule(form, Collective::alltoall, comm, recvtype, recvcount, decline);
    if (!traits || !real.Pack_c || recvcount > PTRDIFF_MAX / traits->size) return std::nullopt;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    const BlockSide taken{recvbuf, recvcount, recvtype, traits->size, true};
    const BlockSide given{sendbuf, sendcount, sendtype, traits->size};
    const MPI_Count block = taken.block_bytes(), bytes = block * traits->size;
    if (!is_worth_a_look(Collective::alltoall, static_cast<uint64_t>(block), decline))
        return std::nullopt;
    if (taken.is_refused_buffer() || (!in_place && is_refused(given, taken, *traits, comm)))
        return std::nullopt;
    auto offer = offer_schedule(form, {Collective::alltoall, static_cast<uint64_t>(block), block},
                                comm, *traits, decline);
    if (!offer) return std::nullopt;
    offer->request.count = block;
    offer->request.in_place = in_place;
    const datatype::TypeInUse receive_in_use(recvtype), send_in_use(in_place ? recvtype : sendtype);
    PreparedCollective prepared;
    prepared.operands.input = in_place ? recvbuf : sendbuf;
    prepared.operands.output = recvbuf;
    try {
        if (!library::is_builtin_type(recvtype) ||
            !(in_place || library::is_builtin_type(sendtype)))
            exchange_packed(form, *offer, in_place ? nullptr : &given, taken, prepared);
    } catch (const std::bad_alloc&) {
        return out_of_memory(comm);
    }
    return run_offer(form, *offer, std::move(prepared), static_cast<uint64_t>(bytes), comm);
}

}  // namespace vecmpi::pipeline
