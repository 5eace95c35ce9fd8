// SPDX-License-Identifier: BSD-3-Clause
// Reductions as schedules.
#include "offer.hpp"
#include "pipeline/hierarchical_collectives.hpp"
#include "scheduled_collectives.hpp"

namespace vecmpi::pipeline {

namespace {

using Kind = CollectiveForm::Kind;

// Dense elements, and an operator that may be applied in any order. Operators of the program run
// only on the thread that asked for them.
bool executor_serves(const CollectiveForm& form, const offload::TypeShape& shape, MPI_Datatype type,
                     MPI_Op op) noexcept {
    if (shape.bytes <= 0 || shape.extent != shape.bytes) return false;
    if (!is_user_op(op)) return offload::is_reducible(op, type);
    if (form.kind != Kind::blocking) return false;
    MPI_Count lower_bound = 0, extent = 0;
    real.Type_get_true_extent_x(type, &lower_bound, &extent);
    return is_commutative(op) && lower_bound == 0 && extent == shape.bytes;
}

// Nothing, and a reason: the executor cannot do it.
std::optional<Operands> operands_of(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                                    MPI_Count count, MPI_Datatype type, MPI_Op op,
                                    Decline& decline) noexcept {
    const offload::TypeShape shape = offload::shape_of(type);
    if (executor_serves(form, shape, type, op))
        return Operands{
            sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, recvbuf, count, type, op, shape.extent};
    decline.note(Counter::decline_type);
    return std::nullopt;
}

}  // namespace

std::optional<int> scheduled_allreduce(const CollectiveForm& form, const void* sendbuf,
                                       void* recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                       MPI_Comm comm, Decline& decline) noexcept {
    const auto traits = traits_to_schedule(form, Collective::allreduce, comm, type, count, decline);
    if (!traits) return std::nullopt;
    const auto bytes = static_cast<uint64_t>(count * offload::size_of(type));
    if (!is_worth_a_look(Collective::allreduce, bytes, decline)) return std::nullopt;
    if (are_refused(sendbuf, count, recvbuf, count, type)) return std::nullopt;
    const auto operands = operands_of(form, sendbuf, recvbuf, count, type, op, decline);
    if (!operands) return std::nullopt;
    auto offer = offer_schedule(form, {Collective::allreduce, bytes, count, is_user_op(op)}, comm,
                                *traits, decline);
    if (!offer) return std::nullopt;
    offer->request.count = count;
    offer->request.in_place = sendbuf == MPI_IN_PLACE;
    if (form.kind == Kind::blocking && !is_user_op(op) &&
        offer->request.algorithm == CollectivePath::hierarchical) {
        const auto served = allreduce_by_slices(form.call, *offer, *operands, comm);
        if (served) {
            count_schedule(form, *offer, bytes);
            return served;
        }
    }
    PreparedCollective prepared;
    prepared.operands = *operands;
    return run_offer(form, *offer, std::move(prepared), bytes, comm);
}

std::optional<int> scheduled_reduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                                    MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                                    MPI_Comm comm, Decline& decline) noexcept {
    const auto traits = traits_to_schedule(form, Collective::reduce, comm, type, count, decline);
    if (!traits || root < 0 || root >= traits->size) return std::nullopt;
    const auto bytes = static_cast<uint64_t>(count * offload::size_of(type));
    if (!is_worth_a_look(Collective::reduce, bytes, decline)) return std::nullopt;
    int rank = 0;
    real.Comm_rank(comm, &rank);
    if (are_refused_in_reduce(sendbuf, recvbuf, count, type, rank == root)) return std::nullopt;
    const auto operands = operands_of(form, sendbuf, recvbuf, count, type, op, decline);
    if (!operands) return std::nullopt;
    auto offer = offer_schedule(form, {Collective::reduce, bytes, count, is_user_op(op)}, comm,
                                *traits, decline);
    if (!offer) return std::nullopt;
    offer->request.count = count;
    offer->request.root = root;
    offer->request.in_place = sendbuf == MPI_IN_PLACE;
    PreparedCollective prepared;
    prepared.operands = *operands;
    return run_offer(form, *offer, std::move(prepared), bytes, comm);
}

std::optional<int> scheduled_reduce_scatter(const CollectiveForm& form, const void* sendbuf,
                                            void* recvbuf, const RankCounts& counts,
                                            MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                            Decline& decline) noexcept {
    const auto traits =
        traits_to_schedule(form, Collective::reduce_scatter, comm, type, 0, decline);
    if (!traits || counts.has_negative(traits->size)) return std::nullopt;
    const MPI_Count total = counts.total(traits->size), most = counts.largest(traits->size);
    const auto bytes = static_cast<uint64_t>(total * offload::size_of(type));
    if (!is_worth_a_look(Collective::reduce_scatter, bytes, decline)) return std::nullopt;
    int rank = 0;
    real.Comm_rank(comm, &rank);
    if (are_refused(sendbuf, total, recvbuf, counts[rank], type)) return std::nullopt;
    const auto operands = operands_of(form, sendbuf, recvbuf, total, type, op, decline);
    const auto blocks = blocks_of(counts, traits->size, 1);
    if (!operands || !blocks) return std::nullopt;
    auto offer = offer_schedule(form, {Collective::reduce_scatter, bytes, most, is_user_op(op)},
                                comm, *traits, decline);
    if (!offer) return std::nullopt;
    offer->request.blocks = &*blocks;
    offer->request.in_place = sendbuf == MPI_IN_PLACE;
    PreparedCollective prepared;
    prepared.operands = *operands;
    return run_offer(form, *offer, std::move(prepared), bytes, comm);
}

}  // namespace vecmpi::pipeline
