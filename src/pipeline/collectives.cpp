// SPDX-License-Identifier: BSD-3-Clause
// The collectives that may be served over several nodes. Each: 1. Looks at the call. 2. Leaves to
// the library what that may refuse on one rank alone. 3. Chooses, once. 4. Who was chosen runs the
// call to its end. Only a schedule serves a nonblocking or persistent form.
#include <cstdint>

#include "hierarchical_collectives.hpp"
#include "pipeline/api.hpp"
#include "pipeline/schedules/scheduled_collectives.hpp"
#include "pipeline/segments/segmented_collectives.hpp"

namespace vecmpi::pipeline {

namespace {

// schedule(candidate) -> what it returns; pieces(candidate) -> error code.
template <class Schedule, class Pieces>
std::optional<int> serve(CollectiveCall& call, const Asked& asked, const Schedule& schedule,
                         const Pieces& pieces) noexcept {
    const Candidate by = candidate_for(call, asked);
    if (by.kind == Candidate::Kind::library) return call.leave();
    if (by.kind == Candidate::Kind::schedule) return call.decline.count_unless(schedule(by));
    const Turn timed(by.turn);
    return pieces(by);
}
// The same where nothing is cut.
template <class Schedule>
std::optional<int> serve(CollectiveCall& call, const Asked& asked,
                         const Schedule& schedule) noexcept {
    return serve(call, asked, schedule, [](const Candidate&) noexcept { return MPI_ERR_INTERN; });
}

// What a reduction asks for.
Asked asked_for_elements(CollectiveCall& call, MPI_Datatype type, MPI_Count all,
                         MPI_Count largest) noexcept {
    Asked asked{static_cast<uint64_t>(all * offload::size_of(type)), largest};
    asked.can_be_scheduled = may_be_scheduled(call, asked.bytes) && schedule_can_reduce(call, type);
    return asked;
}

// What a collective asks for that moves packed bytes: `bytes` for its setting.
Asked asked_for_bytes(CollectiveCall& call, MPI_Count bytes, MPI_Count largest) noexcept {
    Asked asked{static_cast<uint64_t>(bytes), largest};
    asked.can_be_scheduled = may_be_scheduled(call, asked.bytes);
    return asked;
}

// Allreduce and Reduce.
std::optional<int> serve_reduction(CollectiveCall& call, const void* sendbuf, void* recvbuf,
                                   MPI_Count count, MPI_Datatype type) noexcept {
    const offload::TypeShape shape = offload::shape_of(type);
    const bool in_place = sendbuf == MPI_IN_PLACE;
    const Operands what{sendbuf, recvbuf, count, type, call.op, shape.extent};
    Asked asked = asked_for_elements(call, type, count, count);
    asked.can_be_cut = true;
    return serve(
        call, asked,
        [&](const Candidate& by) noexcept {
            Operands of_schedule = what;
            if (in_place) of_schedule.input = recvbuf;
            return scheduled_reduction(call, by, of_schedule, in_place);
        },
        [&](const Candidate& by) noexcept {
            return by.kind == Candidate::Kind::scattered
                       ? scattered_allreduce(call, what)
                       : segmented_reduction(call, by.segments, what);
        });
}

std::optional<int> serve_reduce_scatter(CollectiveCall& call, const void* sendbuf, void* recvbuf,
                                        const RankCounts& counts, MPI_Datatype type,
                                        bool can_be_cut) noexcept {
    if (!call.look_at(type, 0) || counts.has_negative(call.ranks())) return call.leave();
    const MPI_Count total = counts.total(call.ranks());
    if (are_refused(sendbuf, total, recvbuf, counts[call.rank], type)) return call.leave();
    const offload::TypeShape shape = offload::shape_of(type);
    const bool in_place = input_of(sendbuf, recvbuf) == MPI_IN_PLACE;
    const Operands what{in_place ? recvbuf : sendbuf, recvbuf, total, type, call.op, shape.extent};
    Asked asked = asked_for_elements(call, type, total, counts.largest(call.ranks()));
    asked.can_be_cut = can_be_cut && shape.builtin;
    if (can_be_cut && !shape.builtin) call.decline.note(Counter::decline_type);
    return serve(
        call, asked,
        [&](const Candidate& by) noexcept {
            return scheduled_reduce_scatter(call, by, what, counts, in_place);
        },
        [&](const Candidate& by) noexcept {
            return segmented_reduce_scatter(call, by.segments, what, counts, in_place);
        });
}

// Null with a displacement: the library takes it for an address.
bool is_refused_vector(const void* buffer, const RankCounts& counts, offload::RankArray displs,
                       MPI_Datatype type, int ranks) noexcept {
    if (buffer != nullptr) return offload::is_refused_output(buffer, counts.total(ranks), type);
    for (int rank = 0; rank < ranks; ++rank)
        if (displs[rank] == 0 && offload::is_refused(buffer, counts[rank], type)) return true;
    return false;
}

// given: without blocks in place.
std::optional<int> serve_allgather(CollectiveCall& call, const BlockSide& given,
                                   const GatheredVector& gathered, bool can_be_cut) noexcept {
    const bool in_place = given.blocks == 0;
    if (call.may_be_refused(given) ||
        (!in_place && given.block_bytes() != gathered.block_bytes(call.rank)))
        return call.leave();
    Asked asked =
        asked_for_bytes(call, gathered.total_bytes() / gathered.ranks, gathered.largest_bytes());
    asked.can_be_cut = can_be_cut && real.Iallgatherv_c != nullptr;
    return serve(
        call, asked,
        [&](const Candidate& by) noexcept {
            return scheduled_allgather(call, by, given, gathered);
        },
        [&](const Candidate& by) noexcept {
            return segmented_allgather(call, by.segments, given, gathered);
        });
}

// own, vector: of a block each. Elsewhere than on the root the vector means nothing.
std::optional<int> serve_rooted(CollectiveCall& call, const BlockSide& own,
                                const BlockSide& vector) noexcept {
    const bool in_place = own.buffer == MPI_IN_PLACE;
    const BlockSide& known = in_place ? vector : own;
    if (!call.look_at(known.type, known.count) || (in_place && !call.is_root()))
        return call.leave();
    RootedSides sides;
    if (!in_place) sides.own = own;
    if (call.is_root()) {
        sides.vector = vector;
        sides.vector.blocks = call.ranks();
    }
    if (call.may_be_refused(sides.own) || call.may_be_refused(sides.vector)) return call.leave();
    const MPI_Count block = sides.block_bytes();
    const bool has_both = call.is_root() && !in_place;
    if (block > PTRDIFF_MAX / call.ranks() ||
        (has_both &&
         (is_aliased(sides.own, sides.vector, call.root) || block != sides.vector.block_bytes())))
        return call.leave();
    return serve(call, asked_for_bytes(call, block, block),
                 [&](const Candidate& by) noexcept { return scheduled_rooted(call, by, sides); });
}

// One side of an exchange, or none: in place.
BlockSide given_side(const void* sendbuf, MPI_Count count, MPI_Datatype type, int blocks) noexcept {
    return sendbuf == MPI_IN_PLACE ? BlockSide{} : BlockSide{sendbuf, count, type, blocks};
}

}  // namespace

std::optional<int> barrier(const CollectiveForm& form, MPI_Comm comm) noexcept {
    CollectiveCall call{form, Collective::barrier, comm};
    const PrivateCommPointer own = comm_of_small_call(form, comm);
    if (!own) return std::nullopt;
    auto rc = barrier_over_nodes(call, *own);
    if (!rc && !call.is_librarys) rc = scheduled_barrier(call, *own);
    return call.decline.count_unless(rc);
}

std::optional<int> allreduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                             MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                             MPI_Comm comm) noexcept {
    CollectiveCall call{form, Collective::allreduce, comm, 0, op};
    const auto rc = small_allreduce_over_nodes(call, sendbuf, recvbuf, count, datatype);
    if (rc || call.is_librarys) return call.decline.count_unless(rc);
    if (!call.look_at(datatype, count) || are_refused(sendbuf, count, recvbuf, count, datatype))
        return call.leave();
    return serve_reduction(call, input_of(sendbuf, recvbuf), recvbuf, count, datatype);
}

std::optional<int> reduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                          MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                          MPI_Comm comm) noexcept {
    CollectiveCall call{form, Collective::reduce, comm, root, op};
    if (!call.look_at(datatype, count) ||
        are_refused_in_reduce(sendbuf, recvbuf, count, datatype, call.is_root()))
        return call.leave();
    return serve_reduction(call, call.is_root() ? input_of(sendbuf, recvbuf) : sendbuf, recvbuf,
                           count, datatype);
}

std::optional<int> reduce_scatter(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                                  offload::RankArray recvcounts, MPI_Datatype datatype, MPI_Op op,
                                  MPI_Comm comm) noexcept {
    CollectiveCall call{form, Collective::reduce_scatter, comm, 0, op};
    if (recvcounts.missing()) return call.leave();
    return serve_reduce_scatter(call, sendbuf, recvbuf, RankCounts(recvcounts), datatype,
                                recvcounts.as_ints() != nullptr);
}

std::optional<int> reduce_scatter_block(const CollectiveForm& form, const void* sendbuf,
                                        void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                        MPI_Op op, MPI_Comm comm) noexcept {
    CollectiveCall call{form, Collective::reduce_scatter, comm, 0, op};
    return serve_reduce_scatter(call, sendbuf, recvbuf, RankCounts(recvcount), datatype, true);
}

std::optional<int> bcast(const CollectiveForm& form, void* buffer, MPI_Count count,
                         MPI_Datatype datatype, int root, MPI_Comm comm) noexcept {
    CollectiveCall call{form, Collective::bcast, comm, root};
    if (!call.look_at(datatype, count) || offload::is_refused_output(buffer, count, datatype))
        return call.leave();
    const MPI_Count bytes = count * offload::size_of(datatype);
    Asked asked = asked_for_bytes(call, bytes, bytes);
    asked.can_be_cut = true;
    return serve(
        call, asked,
        [&](const Candidate& by) noexcept {
            return scheduled_bcast(call, by, buffer, count, datatype);
        },
        [&](const Candidate& by) noexcept {
            return segmented_bcast(call, by.segments, buffer, count, datatype);
        });
}

std::optional<int> allgather(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                             MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                             MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    CollectiveCall call{form, Collective::allgather, comm};
    if (!call.look_at(recvtype, recvcount) ||
        offload::is_refused_output(recvbuf, recvcount, recvtype))
        return call.leave();
    const offload::RankArray in_order(static_cast<const int*>(nullptr));
    return serve_allgather(call, given_side(sendbuf, sendcount, sendtype, 1),
                           {recvbuf, recvtype, offload::shape_of(recvtype), RankCounts(recvcount),
                            in_order, call.ranks()},
                           true);
}

std::optional<int> allgatherv(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                              MPI_Datatype sendtype, void* recvbuf, offload::RankArray recvcounts,
                              offload::RankArray displs, MPI_Datatype recvtype,
                              MPI_Comm comm) noexcept {
    CollectiveCall call{form, Collective::allgather, comm};
    if (!call.look_at(recvtype, 0) || recvcounts.missing() || displs.missing()) return call.leave();
    const RankCounts counts(recvcounts);
    if (counts.has_negative(call.ranks()) ||
        is_refused_vector(recvbuf, counts, displs, recvtype, call.ranks()))
        return call.leave();
    return serve_allgather(
        call, given_side(sendbuf, sendcount, sendtype, 1),
        {recvbuf, recvtype, offload::shape_of(recvtype), counts, displs, call.ranks()}, false);
}

std::optional<int> alltoall(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                            MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                            MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    CollectiveCall call{form, Collective::alltoall, comm};
    if (!call.look_at(recvtype, recvcount) || recvcount > PTRDIFF_MAX / call.ranks())
        return call.leave();
    const BlockSide taken{recvbuf, recvcount, recvtype, call.ranks(), true};
    const BlockSide given = given_side(sendbuf, sendcount, sendtype, call.ranks());
    const bool in_place = given.blocks == 0;
    // Types of absolute addresses may lie anywhere behind MPI_BOTTOM.
    if (taken.is_refused_buffer() || call.may_be_refused(given) ||
        (!in_place && (is_aliased(given, taken, 0) || given.block_bytes() != taken.block_bytes())))
        return call.leave();
    const MPI_Count block = taken.block_bytes();
    return serve(call, asked_for_bytes(call, block, block), [&](const Candidate& by) noexcept {
        return scheduled_alltoall(call, by, given, taken);
    });
}

std::optional<int> gather(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                          MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                          MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept {
    CollectiveCall call{form, Collective::gather, comm, root};
    return serve_rooted(call, {sendbuf, sendcount, sendtype, 1},
                        {recvbuf, recvcount, recvtype, 1, true});
}

std::optional<int> scatter(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                           MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                           MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept {
    CollectiveCall call{form, Collective::scatter, comm, root};
    return serve_rooted(call, {recvbuf, recvcount, recvtype, 1, true},
                        {sendbuf, sendcount, sendtype, 1});
}

}  // namespace vecmpi::pipeline
