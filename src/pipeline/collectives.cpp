// SPDX-License-Identifier: BSD-3-Clause
// The collectives that the pipeline may serve: which paths are asked, one after the other. Only a
// schedule serves a nonblocking or persistent form.
#include "hierarchical_collectives.hpp"
#include "pipeline/api/turn.hpp"
#include "pipeline/schedules/offer.hpp"
#include "pipeline/schedules/scheduled_collectives.hpp"
#include "pipeline/segments/segmented_collectives.hpp"

namespace vecmpi::pipeline {

namespace {
// Where no schedule serves the collective, no segments do. A blocking call may still have to make
// the private communicator that a nonblocking one wanted.
bool only_library_is_left(Collective collective, Decline& decline) noexcept {
    return !is_served_at_some_size(collective, decline) && !private_comms_are_wanted();
}

// Where there are no segments. scheduled: of scheduled_collectives.hpp.
template <class Scheduled, class... A>
std::optional<int> serve_by_schedule(Collective collective, Scheduled scheduled,
                                     const CollectiveForm& form, const A&... a) noexcept {
    Decline decline;
    if (only_library_is_left(collective, decline)) return decline.count_unless({});
    return decline.count_unless(scheduled(form, a..., decline));
}

bool asks_for_segments(const CollectiveForm& form, const std::optional<int>& served,
                       const Decline& decline) noexcept {
    return !served && form.is_blocking() && !decline.is_librarys();
}
}  // namespace

std::optional<int> barrier(const CollectiveForm& form, MPI_Comm comm) noexcept {
    Decline decline;
    const PrivateCommPointer own = comm_of_small_call(form, comm);
    if (!own) return std::nullopt;
    auto rc = barrier_over_nodes(form, *own, comm, decline);
    if (!rc && !decline.is_librarys()) rc = scheduled_barrier(form, *own, comm, decline);
    return decline.count_unless(rc);
}

std::optional<int> allreduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                             MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                             MPI_Comm comm) noexcept {
    Decline decline;
    if (!is_user_op(op) && only_library_is_left(Collective::allreduce, decline))
        return decline.count_unless({});
    auto rc =
        small_allreduce_over_nodes(form, sendbuf, recvbuf, count, datatype, op, comm, decline);
    if (!rc && !decline.is_librarys())
        rc = scheduled_allreduce(form, sendbuf, recvbuf, count, datatype, op, comm, decline);
    if (asks_for_segments(form, rc, decline)) {
        Turn timed(take_turn_of_others());
        rc = scattered_allreduce(sendbuf, recvbuf, count, datatype, op, comm, decline);
        if (!rc) rc = segmented_allreduce(sendbuf, recvbuf, count, datatype, op, comm, decline);
        if (!rc) timed.forget();
    }
    return decline.count_unless(rc);
}

std::optional<int> reduce(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                          MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                          MPI_Comm comm) noexcept {
    Decline decline;
    if (only_library_is_left(Collective::reduce, decline)) return decline.count_unless({});
    auto rc = scheduled_reduce(form, sendbuf, recvbuf, count, datatype, op, root, comm, decline);
    if (asks_for_segments(form, rc, decline))
        rc = segmented_reduce(sendbuf, recvbuf, count, datatype, op, root, comm, decline);
    return decline.count_unless(rc);
}

std::optional<int> reduce_scatter(const CollectiveForm& form, const void* sendbuf, void* recvbuf,
                                  offload::RankArray recvcounts, MPI_Datatype datatype, MPI_Op op,
                                  MPI_Comm comm) noexcept {
    Decline decline;
    if (recvcounts.missing()) return std::nullopt;
    if (only_library_is_left(Collective::reduce_scatter, decline)) return decline.count_unless({});
    const RankCounts counts(recvcounts);
    auto rc = scheduled_reduce_scatter(form, sendbuf, recvbuf, counts, datatype, op, comm, decline);
    if (asks_for_segments(form, rc, decline) && recvcounts.as_ints() != nullptr)
        rc = segmented_reduce_scatter(sendbuf, recvbuf, counts, datatype, op, comm, decline);
    return decline.count_unless(rc);
}

std::optional<int> reduce_scatter_block(const CollectiveForm& form, const void* sendbuf,
                                        void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                        MPI_Op op, MPI_Comm comm) noexcept {
    Decline decline;
    if (only_library_is_left(Collective::reduce_scatter, decline)) return decline.count_unless({});
    const RankCounts counts(recvcount);
    auto rc = scheduled_reduce_scatter(form, sendbuf, recvbuf, counts, datatype, op, comm, decline);
    if (asks_for_segments(form, rc, decline))
        rc = segmented_reduce_scatter(sendbuf, recvbuf, counts, datatype, op, comm, decline);
    return decline.count_unless(rc);
}

std::optional<int> bcast(const CollectiveForm& form, void* buffer, MPI_Count count,
                         MPI_Datatype datatype, int root, MPI_Comm comm) noexcept {
    Decline decline;
    if (only_library_is_left(Collective::bcast, decline)) return decline.count_unless({});
    auto rc = scheduled_bcast(form, buffer, count, datatype, root, comm, decline);
    if (asks_for_segments(form, rc, decline))
        rc = segmented_bcast(buffer, count, datatype, root, comm, decline);
    return decline.count_unless(rc);
}

std::optional<int> allgather(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                             MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                             MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    Decline decline;
    if (only_library_is_left(Collective::allgather, decline)) return decline.count_unless({});
    auto rc = scheduled_allgather(form, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                  comm, decline);
    if (asks_for_segments(form, rc, decline))
        rc = segmented_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
                                 decline);
    return decline.count_unless(rc);
}

std::optional<int> allgatherv(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                              MPI_Datatype sendtype, void* recvbuf, offload::RankArray recvcounts,
                              offload::RankArray displs, MPI_Datatype recvtype,
                              MPI_Comm comm) noexcept {
    return serve_by_schedule(Collective::allgather, scheduled_allgatherv, form, sendbuf, sendcount,
                             sendtype, recvbuf, recvcounts, displs, recvtype, comm);
}

std::optional<int> alltoall(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                            MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                            MPI_Datatype recvtype, MPI_Comm comm) noexcept {
    return serve_by_schedule(Collective::alltoall, scheduled_alltoall, form, sendbuf, sendcount,
                             sendtype, recvbuf, recvcount, recvtype, comm);
}

std::optional<int> gather(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                          MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                          MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept {
    return serve_by_schedule(Collective::gather, scheduled_gather, form, sendbuf, sendcount,
                             sendtype, recvbuf, recvcount, recvtype, root, comm);
}

std::optional<int> scatter(const CollectiveForm& form, const void* sendbuf, MPI_Count sendcount,
                           MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                           MPI_Datatype recvtype, int root, MPI_Comm comm) noexcept {
    return serve_by_schedule(Collective::scatter, scheduled_scatter, form, sendbuf, sendcount,
                             sendtype, recvbuf, recvcount, recvtype, root, comm);
}

}  // namespace vecmpi::pipeline
