// SPDX-License-Identifier: BSD-3-Clause
// Gather and Scatter as schedules, which move the bytes of packed blocks, and Barrier.
#include <new>

#include "buffers_of_type.hpp"
#include "scheduled_collectives.hpp"

namespace vecmpi::pipeline {

namespace {

void* place_of(const BlockSide& side, int block) noexcept {
    return advanced(side.buffer, block * side.count * offload::shape_of(side.type).extent);
}

// The root packs its block to its place among the others.
void prepare_packed_gather(const CollectiveCall& call, const Candidate& by,
                           const RootedSides& sides, PreparedCollective& prepared) {
    const MPI_Count block = sides.block_bytes(), before = block * call.root;
    if (!sides.in_place()) {
        const BuffersOfType given(call, by, sides.own.type, prepared);
        prepared.packed_before.push_back(
            {given.at(sides.own.buffer, sides.own.count), call.is_root() ? before : 0});
    }
    prepared.packed_bytes = static_cast<size_t>(block);
    if (!call.is_root()) return;
    const BlockSide& vector = sides.vector;
    const BuffersOfType taken(call, by, vector.type, prepared);
    prepared.packed_bytes *= static_cast<size_t>(vector.blocks);
    if (!sides.in_place()) {
        prepared.unpacked_after.push_back({taken.at(vector.buffer, vector.elements()), 0});
        return;
    }
    const int behind = call.root + 1;
    prepared.packed_before.push_back({taken.at(place_of(vector, call.root), vector.count), before});
    if (call.root != 0)
        prepared.unpacked_after.push_back({taken.at(vector.buffer, vector.count * call.root), 0});
    if (behind != vector.blocks)
        prepared.unpacked_after.push_back(
            {taken.at(place_of(vector, behind), vector.count * (vector.blocks - behind)),
             block * behind});
}

// The root unpacks its block from its place among the others.
void prepare_packed_scatter(const CollectiveCall& call, const Candidate& by,
                            const RootedSides& sides, PreparedCollective& prepared) {
    const MPI_Count block = sides.block_bytes();
    prepared.packed_bytes = static_cast<size_t>(block);
    if (call.is_root()) {
        const BlockSide& vector = sides.vector;
        const BuffersOfType given(call, by, vector.type, prepared);
        prepared.packed_bytes *= static_cast<size_t>(vector.blocks);
        prepared.packed_before.push_back({given.at(vector.buffer, vector.elements()), 0});
    }
    if (sides.in_place()) return;
    const BuffersOfType taken(call, by, sides.own.type, prepared);
    prepared.unpacked_after.push_back(
        {taken.at(sides.own.buffer, sides.own.count), call.is_root() ? block * call.root : 0});
}

Operands operands_of(const CollectiveCall& call, const RootedSides& sides) noexcept {
    const bool gathers = call.collective == Collective::gather;
    void* const vector = const_cast<void*>(sides.vector.buffer);
    void* const own = const_cast<void*>(sides.own.buffer);
    Operands operands;
    operands.input = gathers ? own : vector;
    operands.output = gathers ? vector : own;
    return operands;
}

}  // namespace

std::optional<int> scheduled_rooted(const CollectiveCall& call, Candidate by,
                                    const RootedSides& sides) noexcept {
    const bool packs = sides.own.needs_packing() || sides.vector.needs_packing();
    by.request.count = sides.block_bytes();
    by.request.root = call.root;
    by.request.in_place = call.is_root() && (sides.in_place() || packs);
    const datatype::TypeInUse own_in_use(sides.own.type), vector_in_use(sides.vector.type);
    PreparedCollective prepared;
    prepared.operands = operands_of(call, sides);
    try {
        if (packs && call.collective == Collective::gather)
            prepare_packed_gather(call, by, sides, prepared);
        else if (packs)
            prepare_packed_scatter(call, by, sides, prepared);
    } catch (const std::bad_alloc&) {
        return out_of_memory(call.comm);
    }
    return run_schedule(call, by, std::move(prepared), static_cast<uint64_t>(sides.block_bytes()));
}

std::optional<int> scheduled_barrier(CollectiveCall& call, const PrivateComm& own) noexcept {
    if (offload::is_offload_thread()) return std::nullopt;
    call.traits.size = own.layout().ranks();
    call.rank = own.rank();
    const Candidate by = candidate_for(call, {barrier_bytes, 1});
    if (by.kind != Candidate::Kind::schedule) return std::nullopt;
    return run_schedule(call, by, {}, 0);
}

}  // namespace vecmpi::pipeline
