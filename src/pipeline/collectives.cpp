// SPDX-License-Identifier: BSD-3-Clause
// The collectives that the pipeline may serve. Each: 1. the facts of the call, 2. is there a
// schedule for it, 3. run it, 4. else other paths of ours for the blocking form.
#include <algorithm>
#include <new>

#include "offer.hpp"
#include "over_nodes.hpp"
#include "segmented.hpp"

namespace vecmpi::pipeline {

namespace {

using Kind = CollectiveForm::Kind;

// A reduction that our executor can do: dense elements, and an operator that may be applied in any
// order.
struct Reduction {
    offload::TypeShape shape;
    bool served = false;
    bool user_op = false;
};

Reduction look_at_reduction(MPI_Datatype type, MPI_Op op) noexcept {
    Reduction reduction;
    reduction.shape = offload::shape_of(type);
    reduction.user_op = is_user_op(op);
    if (reduction.user_op) {
        MPI_Count lower_bound = 0, extent = 0;
        real.Type_get_true_extent_x(type, &lower_bound, &extent);
        reduction.served = is_commutative(op) && lower_bound == 0 &&
                           extent == reduction.shape.bytes &&
                           reduction.shape.extent == reduction.shape.bytes;
    } else {
        reduction.served =
            offload::is_reducible(op, type) && reduction.shape.extent == reduction.shape.bytes;
    }
    reduction.served = reduction.served && reduction.shape.bytes > 0;
    return reduction;
}

// Operators of the program run only on the thread that asked for them.
bool serves_form(const CollectiveForm& form, const Reduction& reduction,
                 Decline& decline) noexcept {
    if (reduction.served && (form.kind == Kind::blocking || !reduction.user_op)) return true;
    decline.note(Counter::decline_type);
    return false;
}

Elements elements_of(const Reduction& reduction, MPI_Datatype type, MPI_Op op, const void* sendbuf,
                     void* recvbuf) noexcept {
    Elements elements;
    elements.type = type;
    elements.extent = reduction.shape.extent;
    elements.op = op;
    elements.input = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    elements.output = recvbuf;
    return elements;
}

std::optional<int> scheduled_allreduce(const CollectiveForm& form, const void* sendbuf,
                                       void* recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                       MPI_Comm comm, Decline& decline) noexcept {
    const auto traits = traits_to_schedule(form, Collective::allreduce, comm, type, count, decline);
    if (!traits) return std::nullopt;
    const auto bytes = static_cast<uint64_t>(count * offload::size_of(type));
    if (!is_worth_a_look(Collective::allreduce, bytes, decline)) return std::nullopt;
    if (sendbuf == recvbuf || offload::is_refused(sendbuf, count, type) ||
        offload::is_refused_output(recvbuf, count, type))
        return std::nullopt;
    const Reduction reduction = look_at_reduction(type, op);
    if (!serves_form(form, reduction, decline)) return std::nullopt;
    auto offer = offer_schedule(form, {Collective::allreduce, bytes, count, reduction.user_op},
                                comm, *traits, decline);
    if (!offer) return std::nullopt;
    offer->request.count = count;
    offer->request.in_place = sendbuf == MPI_IN_PLACE;
    Recipe recipe;
    recipe.elements = elements_of(reduction, type, op, sendbuf, recvbuf);
    if (form.kind == Kind::blocking && !reduction.user_op &&
        offer->request.algorithm == CollectivePath::hierarchical) {
        const auto served = allreduce_by_slices(form.call, *offer, recipe.elements, comm);
        if (served) {
            count_schedule(form, *offer, bytes);
            return served;
        }
    }
    return run_offer(form, *offer, std::move(recipe), bytes, comm);
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
    const bool is_root = rank == root;
    if (offload::is_refused(sendbuf, count, type) ||
        (is_root && offload::is_refused_output(recvbuf, count, type)))
        return std::nullopt;
    if (is_root ? sendbuf == recvbuf : sendbuf == MPI_IN_PLACE) return std::nullopt;
    const Reduction reduction = look_at_reduction(type, op);
    if (!serves_form(form, reduction, decline)) return std::nullopt;
    auto offer = offer_schedule(form, {Collective::reduce, bytes, count, reduction.user_op}, comm,
                                *traits, decline);
    if (!offer) return std::nullopt;
    offer->request.count = count;
    offer->request.root = root;
    offer->request.in_place = sendbuf == MPI_IN_PLACE;
    Recipe recipe;
    recipe.elements = elements_of(reduction, type, op, sendbuf, recvbuf);
    return run_offer(form, *offer, std::move(recipe), bytes, comm);
}

// Blocks of the vector, one a rank, count_of(rank) elements each; nothing where a count is one that
// the library refuses, or out of memory.
template <class CountOf>
std::optional<Blocks> blocks_of(int ranks, CountOf count_of) noexcept {
    try {
        Blocks blocks(static_cast<size_t>(ranks));
        int64_t first = 0;
        for (int r = 0; r < ranks; ++r) {
            const MPI_Count count = count_of(r);
            if (count < 0) return std::nullopt;
            blocks[static_cast<size_t>(r)] = {first, count};
            first += count;
        }
        return blocks;
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

int64_t total_of(const Blocks& blocks) noexcept {
    int64_t total = 0;
    for (const Segment& block : blocks) total += block.count;
    return total;
}

template <class CountOf>
std::optional<int> scheduled_reduce_scatter(const CollectiveForm& form, const void* sendbuf,
                                            void* recvbuf, CountOf count_of, MPI_Datatype type,
                                            MPI_Op op, MPI_Comm comm, Decline& decline) noexcept {
    const auto traits =
        traits_to_schedule(form, Collective::reduce_scatter, comm, type, 0, decline);
    if (!traits) return std::nullopt;
    const auto blocks = blocks_of(traits->size, count_of);
    if (!blocks) return std::nullopt;
    int rank = 0;
    real.Comm_rank(comm, &rank);
    const int64_t total = total_of(*blocks);
    const auto bytes = static_cast<uint64_t>(total * offload::size_of(type));
    if (!is_worth_a_look(Collective::reduce_scatter, bytes, decline)) return std::nullopt;
    if (sendbuf == recvbuf || offload::is_refused(sendbuf, total, type) ||
        offload::is_refused_output(recvbuf, (*blocks)[static_cast<size_t>(rank)].count, type))
        return std::nullopt;
    const Reduction reduction = look_at_reduction(type, op);
    if (!serves_form(form, reduction, decline)) return std::nullopt;
    auto offer = offer_schedule(
        form, {Collective::reduce_scatter, bytes, largest_block(*blocks), reduction.user_op}, comm,
        *traits, decline);
    if (!offer) return std::nullopt;
    offer->request.blocks = &*blocks;
    offer->request.in_place = sendbuf == MPI_IN_PLACE;
    Recipe recipe;
    recipe.elements = elements_of(reduction, type, op, sendbuf, recvbuf);
    return run_offer(form, *offer, std::move(recipe), bytes, comm);
}

// ---- data that only moves: as bytes of the packed vector, since only their number is the same on
// all ranks
// ------------------------------------------------------------------------------------------

std::optional<int> scheduled_bcast(const CollectiveForm& form, void* buffer, MPI_Count count,
                                   MPI_Datatype type, int root, MPI_Comm comm,
                                   Decline& decline) noexcept {
    const auto traits = traits_to_schedule(form, Collective::bcast, comm, type, count, decline);
    if (!traits || root < 0 || root >= traits->size || !real.Pack_c) return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(type);
    const MPI_Count bytes = count * shape.bytes;
    if (!is_worth_a_look(Collective::bcast, static_cast<uint64_t>(bytes), decline))
        return std::nullopt;
    if (offload::is_refused_output(buffer, count, type)) return std::nullopt;
    auto offer = offer_schedule(form, {Collective::bcast, static_cast<uint64_t>(bytes), bytes},
                                comm, *traits, decline);
    if (!offer) return std::nullopt;
    const datatype::TypeInUse in_use(type);
    offer->request.count = bytes;
    offer->request.root = root;
    offer->request.in_place = true;
    Recipe recipe;
    recipe.elements.input = recipe.elements.output = buffer;
    try {
        if (!shape.builtin) {
            recipe.packed_bytes = static_cast<size_t>(bytes);
            const bool is_root = offer->comm->rank() == root;
            (is_root ? recipe.packed_before : recipe.unpacked_after)
                .emplace_back(form, buffer, count, type, 0);
        }
    } catch (const std::bad_alloc&) {
        return out_of_memory(comm);
    }
    return run_offer(form, *offer, std::move(recipe), static_cast<uint64_t>(bytes), comm);
}

// Where the blocks of an Allgather lie: block r begins displacement(r) elements of recvtype behind
// recvbuf.
struct Gathered {
    void* recvbuf;
    MPI_Datatype type;
    offload::TypeShape shape;
    Blocks blocks;                                 // in bytes of the packed vector
    std::vector<MPI_Count> counts, displacements;  // in elements of type
};

template <class CountOf, class DisplacementOf>
std::optional<Gathered> look_at_gathered(void* recvbuf, MPI_Datatype type, int ranks,
                                         CountOf count_of,
                                         DisplacementOf displacement_of) noexcept {
    try {
        Gathered gathered{recvbuf, type, offload::shape_of(type), {}, {}, {}};
        const MPI_Count bytes = gathered.shape.bytes;
        auto blocks = blocks_of(ranks, [&](int r) noexcept { return count_of(r) * bytes; });
        if (!blocks) return std::nullopt;
        gathered.blocks = std::move(*blocks);
        for (int r = 0; r < ranks; ++r) {
            gathered.counts.push_back(count_of(r));
            gathered.displacements.push_back(displacement_of(r));
        }
        return gathered;
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

// Where the packed vector would begin in the program's memory, if the blocks lie there as they do
// in it. Displacements are each rank's own, and messages hold several blocks: the schedule must not
// rest on them.
std::optional<MPI_Count> begin_of_dense(const Gathered& gathered) noexcept {
    std::optional<MPI_Count> begin;
    for (size_t r = 0; r < gathered.blocks.size(); ++r) {
        if (gathered.counts[r] == 0) continue;
        const MPI_Count first =
            gathered.displacements[r] * gathered.shape.extent - gathered.blocks[r].first;
        if (begin && *begin != first) return std::nullopt;
        begin = first;
    }
    return begin;
}

// Both sides are what they are on the wire: the schedule works in the program's memory.
void gather_in_memory(Recipe& recipe, const Gathered& gathered, MPI_Count begin,
                      const void* sendbuf) noexcept {
    recipe.elements.output = advanced(gathered.recvbuf, begin);
    recipe.elements.input = sendbuf == MPI_IN_PLACE ? recipe.elements.output : sendbuf;
}

// 1. The own block is packed to its place. 2. All others are unpacked.
void gather_packed(Recipe& recipe, const CollectiveForm& form, const Gathered& gathered,
                   const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int rank) {
    const auto r = static_cast<size_t>(rank);
    const auto received = [&](size_t i) {
        return advanced(gathered.recvbuf, gathered.displacements[i] * gathered.shape.extent);
    };
    recipe.packed_bytes = static_cast<size_t>(total_of(gathered.blocks));
    const MPI_Count own = gathered.blocks[r].first;
    if (sendbuf == MPI_IN_PLACE)
        recipe.packed_before.emplace_back(form, received(r), gathered.counts[r], gathered.type,
                                          own);
    else
        recipe.packed_before.emplace_back(form, sendbuf, sendcount, sendtype, own);
    for (size_t i = 0; i < gathered.blocks.size(); ++i)
        if (gathered.counts[i] != 0 && (i != r || sendbuf != MPI_IN_PLACE))
            recipe.unpacked_after.emplace_back(form, received(i), gathered.counts[i], gathered.type,
                                               gathered.blocks[i].first);
}

std::optional<int> scheduled_allgather(const CollectiveForm& form, const void* sendbuf,
                                       MPI_Count sendcount, MPI_Datatype sendtype,
                                       std::optional<Gathered> gathered,
                                       const offload::CommTraits& traits, MPI_Comm comm,
                                       Decline& decline) noexcept {
    const bool in_place = sendbuf == MPI_IN_PLACE;
    if (!gathered || !real.Pack_c) return std::nullopt;
    if (!in_place && (sendcount < 0 || !library::is_type_handle(sendtype))) return std::nullopt;
    if (!in_place && offload::is_refused(sendbuf, sendcount, sendtype)) return std::nullopt;
    if (!in_place && may_be_refused(traits, sendtype, comm)) return std::nullopt;
    int rank = 0;
    real.Comm_rank(comm, &rank);
    const auto own = static_cast<size_t>(rank);
    const offload::TypeShape send_shape = in_place ? gathered->shape : offload::shape_of(sendtype);
    if (!in_place && sendcount * send_shape.bytes != gathered->blocks[own].count)
        return std::nullopt;  // the library's own error
    const int64_t total = total_of(gathered->blocks);
    const auto part = static_cast<uint64_t>(total / traits.size);
    if (!is_worth_a_look(Collective::allgather, part, decline)) return std::nullopt;
    auto offer =
        offer_schedule(form, {Collective::allgather, part, largest_block(gathered->blocks)}, comm,
                       traits, decline);
    if (!offer) return std::nullopt;
    const datatype::TypeInUse receive_in_use(gathered->type),
        send_in_use(in_place ? gathered->type : sendtype);
    Recipe recipe;
    try {
        const auto begin = begin_of_dense(*gathered);
        if (gathered->shape.builtin && send_shape.builtin && begin)
            gather_in_memory(recipe, *gathered, *begin, sendbuf);
        else
            gather_packed(recipe, form, *gathered, sendbuf, sendcount, sendtype, rank);
    } catch (const std::bad_alloc&) {
        return out_of_memory(comm);
    }
    offer->request.blocks = &gathered->blocks;
    offer->request.in_place = in_place || recipe.packed_bytes != 0;
    return run_offer(form, *offer, std::move(recipe), static_cast<uint64_t>(total), comm);
}

}  // namespace

std::optional<int> barrier(const CollectiveForm& form, MPI_Comm comm) noexcept {
    return barrier_over_nodes(form.call, comm);
}

std::optional<int> allreduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                             MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                             MPI_Comm comm) noexcept {
    Decline decline;
    const bool is_blocking = form.kind == Kind::blocking;
    std::optional<int> rc;
    if (is_blocking)
        rc = small_allreduce_over_nodes(form.call, sendbuf, recvbuf, count, datatype, op, comm);
    if (!rc) rc = scheduled_allreduce(form, sendbuf, recvbuf, count, datatype, op, comm, decline);
    if (!rc && is_blocking)
        rc = scattered_allreduce(sendbuf, recvbuf, count, datatype, op, comm, decline);
    if (!rc && is_blocking)
        rc = segmented_allreduce(sendbuf, recvbuf, count, datatype, op, comm, decline);
    return decline.count_unless(rc);
}

std::optional<int> reduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                          MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                          MPI_Comm comm) noexcept {
    Decline decline;
    auto rc = scheduled_reduce(form, sendbuf, recvbuf, count, datatype, op, root, comm, decline);
    if (!rc && form.kind == Kind::blocking)
        rc = segmented_reduce(sendbuf, recvbuf, count, datatype, op, root, comm, decline);
    return decline.count_unless(rc);
}

std::optional<int> reduce_scatter(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                                  offload::RankArray recvcounts, MPI_Datatype datatype, MPI_Op op,
                                  MPI_Comm comm) noexcept {
    Decline decline;
    if (recvcounts.missing()) return std::nullopt;
    const auto count_of = [=](int rank) noexcept { return recvcounts[rank]; };
    auto rc =
        scheduled_reduce_scatter(form, sendbuf, recvbuf, count_of, datatype, op, comm, decline);
    if (!rc && form.kind == Kind::blocking && recvcounts.as_ints() != nullptr)
        rc = segmented_reduce_scatter(sendbuf, recvbuf, recvcounts.as_ints(), 0, datatype, op, comm,
                                      decline);
    return decline.count_unless(rc);
}

std::optional<int> reduce_scatter_block(const CollectiveForm& form, const void* sendbuf,
                                        void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                        MPI_Op op, MPI_Comm comm) noexcept {
    Decline decline;
    const auto count_of = [=](int) noexcept { return recvcount; };
    auto rc =
        scheduled_reduce_scatter(form, sendbuf, recvbuf, count_of, datatype, op, comm, decline);
    if (!rc && form.kind == Kind::blocking)
        rc = segmented_reduce_scatter(sendbuf, recvbuf, nullptr, recvcount, datatype, op, comm,
                                      decline);
    return decline.count_unless(rc);
}

std::optional<int> bcast(const CollectiveForm& form, void* buffer, MPI_Count count,
                         MPI_Datatype datatype, int root, MPI_Comm comm) noexcept {
    Decline decline;
    auto rc = scheduled_bcast(form, buffer, count, datatype, root, comm, decline);
    if (!rc && form.kind == Kind::blocking)
        rc = segmented_bcast(buffer, count, datatype, root, comm, decline);
    return decline.count_unless(rc);
}

std::optional<int> allgather(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                             MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                             MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    Decline decline;
    const auto traits =
        traits_to_schedule(form, Collective::allgather, comm, recvtype, recvcount, decline);
    std::optional<int> rc;
    if (traits && !offload::is_refused_output(recvbuf, recvcount, recvtype) &&
        is_worth_a_look(Collective::allgather,
                        static_cast<uint64_t>(recvcount * offload::size_of(recvtype)), decline)) {
        auto gathered = look_at_gathered(
            recvbuf, recvtype, traits->size, [=](int) noexcept { return recvcount; },
            [=](int rank) noexcept { return rank * recvcount; });
        rc = scheduled_allgather(form, sendbuf, sendcount, sendtype, std::move(gathered), *traits,
                                 comm, decline);
    }
    if (!rc && form.kind == Kind::blocking)
        rc = segmented_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
                                 decline);
    return decline.count_unless(rc);
}

std::optional<int> allgatherv(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                              MPI_Datatype sendtype, void* recvbuf, offload::RankArray recvcounts,
                              offload::RankArray displs, MPI_Datatype recvtype,
                              MPI_Comm comm) noexcept {
    Decline decline;
    const auto traits = traits_to_schedule(form, Collective::allgather, comm, recvtype, 0, decline);
    if (!traits || recvcounts.missing() || displs.missing())
        return decline.count_unless(std::nullopt);
    auto gathered = look_at_gathered(
        recvbuf, recvtype, traits->size, [=](int rank) noexcept { return recvcounts[rank]; },
        [=](int rank) noexcept { return displs[rank]; });
    if (!gathered || offload::is_refused_output(recvbuf, total_of(gathered->blocks), recvtype))
        return std::nullopt;
    return decline.count_unless(scheduled_allgather(form, sendbuf, sendcount, sendtype,
                                                    std::move(gathered), *traits, comm, decline));
}

}  // namespace vecmpi::pipeline
