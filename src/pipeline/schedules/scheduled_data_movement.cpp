// SPDX-License-Identifier: BSD-3-Clause
// Bcast, Allgather and Alltoall as schedules. They move the bytes of the packed vector: only their
// number is the same on all ranks.
#include <new>

#include "buffers_of_type.hpp"
#include "scheduled_collectives.hpp"

namespace vecmpi::pipeline {

namespace {

// Where the packed vector would begin behind the buffer, if the blocks lie there as they do in it.
// Messages hold several blocks, and the schedule must not rest on displacements.
std::optional<MPI_Count> begin_of_dense(const GatheredVector& gathered,
                                        const Blocks& blocks) noexcept {
    std::optional<MPI_Count> begin;
    for (int r = 0; r < gathered.ranks; ++r) {
        if (gathered.counts[r] == 0) continue;
        const MPI_Count first =
            gathered.displacement(r) * gathered.shape.extent - blocks[static_cast<size_t>(r)].first;
        if (begin && *begin != first) return std::nullopt;
        begin = first;
    }
    return begin;
}

// 1. The own block is packed to its place. 2. All others are unpacked.
void gather_packed(const CollectiveCall& call, const Candidate& by, const BlockSide& given,
                   const GatheredVector& gathered, const Blocks& blocks,
                   PreparedCollective& prepared) {
    const bool in_place = given.blocks == 0;
    const auto first_of = [&](int r) { return blocks[static_cast<size_t>(r)].first; };
    const BuffersOfType received(call, by, gathered.type, prepared);
    const auto received_from = [&](int r) -> PreparedCollective::Part {
        return {received.at(gathered.place_of(r), gathered.counts[r]), first_of(r)};
    };
    prepared.packed_bytes = static_cast<size_t>(gathered.total_bytes());
    if (in_place) {
        prepared.packed_before.push_back(received_from(call.rank));
    } else {
        const BuffersOfType sent(call, by, given.type, prepared);
        prepared.packed_before.push_back({sent.at(given.buffer, given.count), first_of(call.rank)});
    }
    for (int r = 0; r < gathered.ranks; ++r)
        if (gathered.counts[r] != 0 && !(r == call.rank && in_place))
            prepared.unpacked_after.push_back(received_from(r));
}

// In the packed memory the output lies behind the input. In place they are one.
void exchange_packed(const CollectiveCall& call, const Candidate& by, const BlockSide& given,
                     const BlockSide& taken, PreparedCollective& prepared) {
    const MPI_Count bytes = taken.block_bytes() * taken.blocks;
    const bool in_place = given.blocks == 0;
    const BuffersOfType received(call, by, taken.type, prepared);
    prepared.packed_output = in_place ? 0 : static_cast<size_t>(bytes);
    prepared.packed_bytes = prepared.packed_output + static_cast<size_t>(bytes);
    if (in_place) {
        prepared.packed_before.push_back({received.at(taken.buffer, taken.elements()), 0});
    } else {
        const BuffersOfType sent(call, by, given.type, prepared);
        prepared.packed_before.push_back({sent.at(given.buffer, given.elements()), 0});
    }
    prepared.unpacked_after.push_back({received.at(taken.buffer, taken.elements()),
                                       static_cast<MPI_Count>(prepared.packed_output)});
}

}  // namespace

std::optional<int> scheduled_bcast(const CollectiveCall& call, Candidate by, void* buffer,
                                   MPI_Count count, MPI_Datatype type) noexcept {
    const offload::TypeShape shape = offload::shape_of(type);
    const MPI_Count bytes = count * shape.bytes;
    const datatype::TypeInUse in_use(type);
    by.request.count = bytes;
    by.request.root = call.root;
    by.request.in_place = true;
    PreparedCollective prepared;
    prepared.operands.input = prepared.operands.output = buffer;
    try {
        if (!shape.builtin) {
            const BuffersOfType buffers(call, by, type, prepared);
            prepared.packed_bytes = static_cast<size_t>(bytes);
            (call.is_root() ? prepared.packed_before : prepared.unpacked_after)
                .push_back({buffers.at(buffer, count), 0});
        }
    } catch (const std::bad_alloc&) {
        return out_of_memory(call.comm);
    }
    return run_schedule(call, by, std::move(prepared), static_cast<uint64_t>(bytes));
}

std::optional<int> scheduled_allgather(const CollectiveCall& call, Candidate by,
                                       const BlockSide& given,
                                       const GatheredVector& gathered) noexcept {
    const bool in_place = given.blocks == 0;
    const datatype::TypeInUse receive_in_use(gathered.type),
        send_in_use(in_place ? gathered.type : given.type);
    const auto blocks = blocks_of(gathered.counts, gathered.ranks, gathered.shape.bytes);
    if (!blocks) return out_of_memory(call.comm);
    PreparedCollective prepared;
    const auto begin = begin_of_dense(gathered, *blocks);
    try {
        if (begin && gathered.shape.builtin && !given.needs_packing()) {
            prepared.operands.output = advanced(gathered.buffer, *begin);
            prepared.operands.input = in_place ? prepared.operands.output : given.buffer;
        } else {
            gather_packed(call, by, given, gathered, *blocks, prepared);
        }
    } catch (const std::bad_alloc&) {
        return out_of_memory(call.comm);
    }
    by.request.blocks = &*blocks;
    by.request.in_place = in_place || prepared.packed_bytes != 0;
    return run_schedule(call, by, std::move(prepared),
                        static_cast<uint64_t>(gathered.total_bytes()));
}

std::optional<int> scheduled_alltoall(const CollectiveCall& call, Candidate by,
                                      const BlockSide& given, const BlockSide& taken) noexcept {
    const bool in_place = given.blocks == 0;
    const datatype::TypeInUse receive_in_use(taken.type),
        send_in_use(in_place ? taken.type : given.type);
    by.request.count = taken.block_bytes();
    by.request.in_place = in_place;
    PreparedCollective prepared;
    prepared.operands.input = in_place ? taken.buffer : given.buffer;
    prepared.operands.output = const_cast<void*>(taken.buffer);
    try {
        if (taken.needs_packing() || given.needs_packing())
            exchange_packed(call, by, given, taken, prepared);
    } catch (const std::bad_alloc&) {
        return out_of_memory(call.comm);
    }
    return run_schedule(call, by, std::move(prepared),
                        static_cast<uint64_t>(taken.block_bytes() * taken.blocks));
}

}  // namespace vecmpi::pipeline
