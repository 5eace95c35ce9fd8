// SPDX-License-Identifier: BSD-3-Clause
// Collectives over nodes on which ranks share memory.
#include "over_nodes.hpp"

#include <cstring>
#include <new>

#include "calls.hpp"

namespace vecmpi::pipeline {

namespace {

// Everything about a node's memory is made with blocking collectives. A communicator that a program
// uses for a moment must not pay that.
uint64_t calls_before() noexcept { return settings().intranode == IntranodeMode::on ? 0 : 20; }

// Before all else, since most programs run on one node. The library's own collectives, between the
// nodes, would spin where twins run.
bool may_serve_small_calls() noexcept {
    const offload::Agreement& agreed = offload::agreement();
    if (agreed.valid && (agreed.one_node || agreed.twin_collectives)) return false;
    const Settings& s = settings();
    return s.intranode != IntranodeMode::off && !s.reproducible && offload::engine_runs();
}

// A communicator that has made such calls before goes on with them in the callbacks of
// MPI_Finalize, where nothing is agreed any more: other ranks may not be in there yet.
bool may_serve_comm(MPI_Comm comm) noexcept {
    if (!library::is_comm_handle(comm)) return false;
    const BesideComm beside = what_is_beside(comm);
    if (beside != BesideComm::nothing) return beside != BesideComm::refused;
    if (!offload::agreement().valid) return false;
    const offload::CommTraits traits = offload::comm_traits(comm);
    return !traits.inter && traits.world_only && traits.size > 2;
}

// For a small call on comm: the same on all ranks.
PrivateCommPointer comm_of_small_call(Call call, MPI_Comm comm) noexcept {
    if (PrivateCommPointer known = find_private_comm(comm)) return known;
    if (!has_called_often(comm, calls_before())) return nullptr;
    int ranks = 0;
    real.Comm_size(comm, &ranks);
    const offload::DirectCall scope(call);
    return obtain_private_comm(comm, ranks, most_private_comms_of_small_calls);
}

// Run between the first ranks of the nodes; the others wait for them.
template <class Between>
std::optional<int> run_by_leaders(Call call, const node::NodeVector& vector, MPI_Comm comm,
                                  const Between& between) noexcept {
    const PrivateCommPointer beside = comm_of_small_call(call, comm);
    if (!beside) return std::nullopt;
    NodeParts* const parts = beside->obtain_node_parts(
        call, vector.bytes() <= node::NodeTeam::most_bytes_in_line ? PrivateComm::NodeMemory::lines
                                                                   : PrivateComm::NodeMemory::bays);
    if (parts == nullptr) return std::nullopt;
    offload::issue_what_was_posted();
    node::NodeTeam& team = parts->team();
    team.reduce_to_first(vector);
    int error = MPI_SUCCESS;
    if (parts->leaders() != MPI_COMM_NULL) {
        const offload::Within library(offload::Inside::library);
        error = between(parts->leaders());
    }
    const bool good = team.bcast_from_first(vector.output, vector.bytes(), error == MPI_SUCCESS);
    if (!good && error == MPI_SUCCESS) error = MPI_ERR_OTHER;
    count_call(static_cast<size_t>(call), Path::on_node, vector.bytes());
    if (error != MPI_SUCCESS) real.Comm_call_errhandler(comm, error);
    return error;
}

}  // namespace

std::optional<int> barrier_over_nodes(Call call, MPI_Comm comm) noexcept {
    if (!may_serve_small_calls() || !may_serve_comm(comm)) return std::nullopt;
    return run_by_leaders(call, {}, comm,
                          [](MPI_Comm leaders) noexcept { return real.Barrier(leaders); });
}

std::optional<int> small_allreduce_over_nodes(Call call, const void* sendbuf, void* recvbuf,
                                              MPI_Count count, MPI_Datatype type, MPI_Op op,
                                              MPI_Comm comm) noexcept {
    if (!may_serve_small_calls() || count <= 0 || !offload::is_reducible(op, type))
        return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(type);
    const auto most = static_cast<MPI_Count>(node::NodeTeam::most_small_bytes);
    if (shape.extent != shape.bytes || count > most / shape.bytes) return std::nullopt;
    const node::NodeVector vector{
        sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, recvbuf, count, type, op, shape.bytes};
    if (settings().allreduce.at(vector.bytes()) != CollectivePath::automatic ||
        settings().segments != 0 || settings().segment_bytes != 0)
        return std::nullopt;
    if (sendbuf == recvbuf || offload::is_refused(sendbuf, count, type) ||
        offload::is_refused_output(recvbuf, count, type) || !may_serve_comm(comm))
        return std::nullopt;
    return run_by_leaders(call, vector, comm, [&](MPI_Comm leaders) noexcept {
        return real.Allreduce(MPI_IN_PLACE, recvbuf, static_cast<int>(count), type, op, leaders);
    });
}

std::optional<int> allreduce_by_slices(Call call, const Offer& offer, const Elements& elements,
                                       MPI_Comm comm) noexcept {
    NodeParts* parts = offer.comm->obtain_node_parts(call, PrivateComm::NodeMemory::lines);
    if (parts == nullptr || parts->slices() == 0) return std::nullopt;
    parts = offer.comm->obtain_node_parts(call, PrivateComm::NodeMemory::bays);
    if (parts == nullptr) return std::nullopt;
    offload::issue_what_was_posted();
    node::NodeTeam& team = parts->team();
    const unsigned segments = offer.request.segments;
    const auto part = [&](unsigned i) noexcept {
        const Segment cut = segment(offer.request.count, segments, i);
        const MPI_Count offset = cut.first * elements.extent;
        return node::NodeVector{advanced(elements.input, offset),
                                advanced(elements.output, offset),
                                cut.count,
                                elements.type,
                                elements.op,
                                elements.extent};
    };
    const auto begin_to_carry = [&](const node::NodeVector& vector, MPI_Request* request) noexcept {
        ScheduleRequest carried = offer.request;
        carried.count = vector.elements;
        carried.segments = 1;
        carried.in_place = false;
        carried.slices = parts->slices();
        Elements slices = elements;
        slices.input = slices.output = vector.output;
        std::unique_ptr<offload::Job> run;
        try {
            if (auto schedule = offer.comm->schedule_for(carried))
                run = std::make_unique<ScheduleRun>(offer.comm, std::move(schedule), slices,
                                                    std::nullopt, Looks::often);
        } catch (const std::bad_alloc&) {
        }
        if (run) return offload::post_job(call, std::move(run), comm, request);
        offer.comm->end_turn(offer.comm->take_turn());  // as many as the others
        return out_of_memory(comm);
    };
    constexpr unsigned on_the_wire = 2;
    MPI_Request requests[on_the_wire] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int error = MPI_SUCCESS;
    const auto note = [&error](int code) noexcept {
        if (error == MPI_SUCCESS) error = code;
    };
    for (unsigned i = 0; i < segments + on_the_wire - 1; ++i) {
        if (i < segments) {
            team.reduce_slices(part(i), parts->slices());
            note(begin_to_carry(part(i), &requests[i % on_the_wire]));
        }
        if (i + 1 < on_the_wire) continue;
        const unsigned carried = i + 1 - on_the_wire;
        note(offload::wait_one(&requests[carried % on_the_wire], MPI_STATUS_IGNORE));
        team.gather_slices(part(carried), parts->slices());
    }
    return error;
}

}  // namespace vecmpi::pipeline
