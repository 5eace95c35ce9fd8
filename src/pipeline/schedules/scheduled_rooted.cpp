// SPDX-License-Identifier: BSD-3-Clause
// Gather and Scatter as schedules, which move the bytes of packed blocks, and Barrier. What the
// choice rests on is the bytes of one block: all ranks know them.
#include <new>

#include "buffers_of_type.hpp"
#include "pipeline/block_side.hpp"
#include "scheduled_collectives.hpp"

namespace vecmpi::pipeline {

namespace {

void* place_of(const BlockSide& side, int block) noexcept {
    return advanced(side.buffer, block * side.count * offload::shape_of(side.type).extent);
}

bool is_packed(const BlockSide& side) noexcept {
    return side.blocks != 0 && !library::is_builtin_type(side.type);
}

// The root in place has no block of its own: that lies in the vector.
struct RootedCall {
    Collective collective;
    int rank, root;
    BlockSide own;     // this rank's block
    BlockSide vector;  // the root's: one block of each rank
    bool is_root() const noexcept { return rank == root; }
    bool in_place() const noexcept { return own.blocks == 0; }
    const BlockSide& known() const noexcept { return in_place() ? vector : own; }
    MPI_Count block_bytes() const noexcept { return known().block_bytes(); }
};

// The library's to refuse, or its error.
bool is_refused(const BlockSide& side, const offload::CommTraits& traits, MPI_Comm comm) noexcept {
    if (side.blocks == 0) return false;
    if (side.count < 0 || side.count > PTRDIFF_MAX / side.blocks ||
        !library::is_type_handle(side.type) || may_be_refused(traits, side.type, comm))
        return true;
    return (!side.is_written && side.buffer == MPI_IN_PLACE) || side.is_refused_buffer();
}

bool is_refused(const RootedCall& what, const offload::CommTraits& traits, MPI_Comm comm) noexcept {
    if (is_refused(what.own, traits, comm) || is_refused(what.vector, traits, comm)) return true;
    if (!what.is_root() || what.in_place()) return false;
    return is_aliased(what.own, what.vector, what.root) ||
           what.own.block_bytes() != what.vector.block_bytes();
}

// The root packs its block to its place among the others.
void prepare_packed_gather(const CollectiveForm& form, const Offer& offer, const RootedCall& what,
                           PreparedCollective& prepared) {
    const MPI_Count block = what.block_bytes(), before = block * what.root;
    if (!what.in_place()) {
        const BuffersOfType given(form, offer, what.own.type, prepared);
        prepared.packed_before.push_back(
            {given.at(what.own.buffer, what.own.count), what.is_root() ? before : 0});
    }
    prepared.packed_bytes = static_cast<size_t>(block);
    if (!what.is_root()) return;
    const BlockSide& vector = what.vector;
    const BuffersOfType taken(form, offer, vector.type, prepared);
    prepared.packed_bytes *= static_cast<size_t>(vector.blocks);
    if (!what.in_place()) {
        prepared.unpacked_after.push_back({taken.at(vector.buffer, vector.elements()), 0});
        return;
    }
    const int behind = what.root + 1;
    prepared.packed_before.push_back({taken.at(place_of(vector, what.root), vector.count), before});
    if (what.root != 0)
        prepared.unpacked_after.push_back({taken.at(vector.buffer, vector.count * what.root), 0});
    if (behind != vector.blocks)
        prepared.unpacked_after.push_back(
            {taken.at(place_of(vector, behind), vector.count * (vector.blocks - behind)),
             block * behind});
}

// The root unpacks its block from its place among the others.
void prepare_packed_scatter(const CollectiveForm& form, const Offer& offer, const RootedCall& what,
                            PreparedCollective& prepared) {
    const MPI_Count block = what.block_bytes();
    prepared.packed_bytes = static_cast<size_t>(block);
    if (what.is_root()) {
        const BlockSide& vector = what.vector;
        const BuffersOfType given(form, offer, vector.type, prepared);
        prepared.packed_bytes *= static_cast<size_t>(vector.blocks);
        prepared.packed_before.push_back({given.at(vector.buffer, vector.elements()), 0});
    }
    if (what.in_place()) return;
    const BuffersOfType taken(form, offer, what.own.type, prepared);
    prepared.unpacked_after.push_back(
        {taken.at(what.own.buffer, what.own.count), what.is_root() ? block * what.root : 0});
}

Operands operands_of(const RootedCall& what) noexcept {
    const bool gathers = what.collective == Collective::gather;
    void* const vector = const_cast<void*>(what.vector.buffer);
    void* const own = const_cast<void*>(what.own.buffer);
    Operands operands;
    operands.input = gathers ? own : vector;
    operands.output = gathers ? vector : own;
    return operands;
}

std::optional<int> run_rooted(const CollectiveForm& form, const RootedCall& what,
                              const offload::CommTraits& traits, MPI_Comm comm,
                              Decline& decline) noexcept {
    if (!real.Pack_c || is_refused(what, traits, comm)) return std::nullopt;
    const MPI_Count block = what.block_bytes();
    const auto bytes = static_cast<uint64_t>(block);
    if (block > PTRDIFF_MAX / traits.size || !is_worth_a_look(what.collective, bytes, decline))
        return std::nullopt;
    auto offer = offer_schedule(form, {what.collective, bytes, block}, comm, traits, decline);
    if (!offer) return std::nullopt;
    const bool packs = is_packed(what.own) || is_packed(what.vector);
    offer->request.count = block;
    offer->request.root = what.root;
    offer->request.in_place = what.is_root() && (what.in_place() || packs);
    const datatype::TypeInUse own_in_use(what.own.type), vector_in_use(what.vector.type);
    PreparedCollective prepared;
    prepared.operands = operands_of(what);
    try {
        if (packs && what.collective == Collective::gather)
            prepare_packed_gather(form, *offer, what, prepared);
        else if (packs)
            prepare_packed_scatter(form, *offer, what, prepared);
    } catch (const std::bad_alloc&) {
        return out_of_memory(comm);
    }
    return run_offer(form, *offer, std::move(prepared), bytes, comm);
}

// own, vector: of a block each. Elsewhere than on the root the vector means nothing.
std::optional<int> serve_rooted(const CollectiveForm& form, Collective collective,
                                const BlockSide& own, const BlockSide& vector, int root,
                                MPI_Comm comm, Decline& decline) noexcept {
    const bool in_place = own.buffer == MPI_IN_PLACE;
    const BlockSide& known = in_place ? vector : own;
    const auto traits =
        traits_to_schedule(form, collective, comm, known.type, known.count, decline);
    if (!traits || root < 0 || root >= traits->size) return std::nullopt;
    RootedCall what{collective, 0, root, {}, {}};
    real.Comm_rank(comm, &what.rank);
    if (in_place && !what.is_root()) return std::nullopt;
    if (!in_place) what.own = own;
    if (what.is_root()) {
        what.vector = vector;
        what.vector.blocks = traits->size;
    }
    return run_rooted(form, what, *traits, comm, decline);
}

}  // namespace

std::optional<int> scheduled_gather(const CollectiveForm& form, const void* sendbuf,
                                    MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                    MPI_Count recvcount, MPI_Datatype recvtype, int root,
                                    MPI_Comm comm, Decline& decline) noexcept {
    return serve_rooted(form, Collective::gather, {sendbuf, sendcount, sendtype, 1},
                        {recvbuf, recvcount, recvtype, 1, true}, root, comm, decline);
}

std::optional<int> scheduled_scatter(const CollectiveForm& form, const void* sendbuf,
                                     MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                                     MPI_Count recvcount, MPI_Datatype recvtype, int root,
                                     MPI_Comm comm, Decline& decline) noexcept {
    return serve_rooted(form, Collective::scatter, {recvbuf, recvcount, recvtype, 1, true},
                        {sendbuf, sendcount, sendtype, 1}, root, comm, decline);
}

std::optional<int> scheduled_barrier(const CollectiveForm& form, const PrivateComm& known,
                                     MPI_Comm comm, Decline& decline) noexcept {
    if (offload::is_offload_thread()) return std::nullopt;
    offload::CommTraits traits;
    traits.size = known.layout().ranks();
    auto offer =
        offer_schedule(form, {Collective::barrier, barrier_bytes, 1}, comm, traits, decline);
    if (!offer) return std::nullopt;
    return run_offer(form, *offer, {}, 0, comm);
}

}  // namespace vecmpi::pipeline
