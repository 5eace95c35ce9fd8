// SPDX-License-Identifier: BSD-3-Clause
// What is done on the nodes, in memory, and what between them.
#include "hierarchical_collectives.hpp"

#include <cstring>
#include <new>

#include "pipeline/api/calls_left.hpp"
#include "pipeline/schedules/executor.hpp"

namespace vecmpi::pipeline {

namespace {

// Asked before all else, since most programs run on one node.
bool is_one_node() noexcept {
    const offload::Agreement& agreed = offload::agreement();
    return agreed.valid && agreed.one_node;
}

// Where twins run, the library's own collectives between the nodes would spin.
bool may_use_node_memory() noexcept {
    const offload::Agreement& agreed = offload::agreement();
    if (agreed.valid && agreed.twin_collectives) return false;
    const Settings& s = settings();
    return s.intranode != IntranodeMode::off && !s.reproducible;
}

// In the callbacks of MPI_Finalize nothing is agreed any more, but other ranks may not be in there
// yet: a communicator that has made such calls before goes on with them.
bool may_serve_comm(MPI_Comm comm) noexcept {
    if (!library::is_comm_handle(comm)) return false;
    const PrivateCommState state = private_comm_state(comm);
    if (state != PrivateCommState::nothing) return state != PrivateCommState::refused;
    if (!offload::agreement().valid) return false;
    const offload::CommTraits traits = offload::comm_traits(comm);
    return !traits.inter && traits.world_only && traits.size > 2;
}

// Run between the first ranks of the nodes; the others wait for them.
template <class Between>
std::optional<int> run_by_leaders(CollectiveCall& call, const Operands& vector, PrivateComm& own,
                                  const Between& between) noexcept {
    NodeParts* const parts =
        own.obtain_node_parts(call.form.call, vector.bytes() <= node::NodeTeam::most_bytes_in_line
                                                  ? PrivateComm::NodeMemory::lines
                                                  : PrivateComm::NodeMemory::staging_buffers);
    if (parts == nullptr) return std::nullopt;
    TriedCall tried{call.form.call, call.collective, vector.bytes()};
    tried.ours = "the nodes' memory";
    const bool is_set = settings().intranode == IntranodeMode::on;
    if (is_set) tried.candidates = bit_of(Server::ours);
    const ServedBy by =
        settings().trials == TrialMode::off && !is_set
            ? ServedBy{own.trials().known(tried.collective, tried.bytes, Server::ours)}
            : own.trials().begin_call(tried, own.comm());
    if (by.server == Server::library) {
        turn_of_others = by.turn;
        call.is_librarys = true;
        return std::nullopt;
    }
    const Turn timed(by.turn);
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
    offload::note_return_from_memory();
    count_call(static_cast<size_t>(call.form.call), Path::on_node, vector.bytes());
    if (error != MPI_SUCCESS) real.Comm_call_errhandler(call.comm, error);
    return error;
}

}  // namespace

PrivateCommPointer comm_of_small_call(const CollectiveForm& form, MPI_Comm comm) noexcept {
    if (is_one_node() || !offload::engine_runs() || !may_serve_comm(comm)) return nullptr;
    if (PrivateCommPointer known = find_private_comm(comm)) return known;
    if (!form.is_blocking() || !has_called_often(comm, node::calls_before_sharing()))
        return nullptr;
    int ranks = 0;
    real.Comm_size(comm, &ranks);
    const offload::DirectCall scope(form.call);
    return obtain_private_comm(comm, ranks, most_private_comms_of_small_calls);
}

std::optional<int> barrier_over_nodes(CollectiveCall& call, PrivateComm& own) noexcept {
    if (!call.form.is_blocking() || !may_use_node_memory()) return std::nullopt;
    return run_by_leaders(call, {}, own,
                          [](MPI_Comm leaders) noexcept { return real.Barrier(leaders); });
}

std::optional<int> small_allreduce_over_nodes(CollectiveCall& call, const void* sendbuf,
                                              void* recvbuf, MPI_Count count,
                                              MPI_Datatype type) noexcept {
    // Where ranks are alone, some of them skip all this (is_surely_librarys()).
    if (!call.form.is_blocking() || is_one_node() || calls_left.ranks_are_alone ||
        !may_use_node_memory() || count <= 0 || !offload::is_reducible(call.op, type))
        return std::nullopt;
    const offload::TypeShape shape = offload::shape_of(type);
    const auto most = static_cast<MPI_Count>(node::NodeTeam::most_small_bytes);
    if (shape.extent != shape.bytes || count > most / shape.bytes) return std::nullopt;
    const Operands vector{
        sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, recvbuf, count, type, call.op, shape.bytes};
    if (settings().paths_of(Collective::allreduce).at(vector.bytes()) !=
            CollectivePath::automatic ||
        settings().segments != 0 || settings().segment_bytes != 0)
        return std::nullopt;
    if (are_refused(sendbuf, count, recvbuf, count, type)) return std::nullopt;
    const PrivateCommPointer own = comm_of_small_call(call.form, call.comm);
    if (!own) return std::nullopt;
    return run_by_leaders(call, vector, *own, [&](MPI_Comm leaders) noexcept {
        return real.Allreduce(MPI_IN_PLACE, recvbuf, static_cast<int>(count), type, call.op,
                              leaders);
    });
}

namespace {

// One rank's part of an Allreduce in segments. Segment i is reduced on the node into slices; then
// each rank carries its slice over the nodes by a schedule, while segment i + 1 is reduced; then
// the node gathers the slices.
class AllreduceBySlices {
  public:
    AllreduceBySlices(const CollectiveCall& call, const Candidate& by, const Operands& what,
                      NodeParts& parts) noexcept
        : call_(call), by_(by), what_(what), parts_(parts) {}

    // The first error; all segments are done whatever happens.
    int run() noexcept {
        const unsigned segments = by_.request.segments;
        for (unsigned i = 0; i < segments + most_carried - 1; ++i) {
            if (i < segments) {
                parts_.team().reduce_slices(part(i), parts_.slices());
                note(begin_to_carry(part(i), &requests_[i % most_carried]));
            }
            if (i + 1 < most_carried) continue;
            const unsigned carried = i + 1 - most_carried;
            note(offload::wait_one(&requests_[carried % most_carried], MPI_STATUS_IGNORE));
            parts_.team().gather_slices(part(carried), parts_.slices());
        }
        offload::note_return_from_memory();
        return error_;
    }

  private:
    static constexpr unsigned most_carried = 2;  // segments that cross the network at once

    void note(int code) noexcept {
        if (error_ == MPI_SUCCESS) error_ = code;
    }
    Operands part(unsigned i) const noexcept {
        const Segment cut = segment(what_.count, by_.request.segments, i);
        return what_.part(cut.first, cut.count);
    }
    int begin_to_carry(const Operands& part, MPI_Request* request) noexcept {
        ScheduleRequest carried = by_.request;
        carried.count = part.count;
        carried.segments = 1;
        carried.in_place = false;
        carried.slices = parts_.slices();
        Operands slices = part;
        slices.input = slices.output;
        std::unique_ptr<offload::Job> run;
        try {
            if (auto schedule = by_.own->schedule_for(carried))
                run = std::make_unique<ScheduleRun>(by_.own, std::move(schedule), slices,
                                                    std::nullopt, Looks::often);
        } catch (const std::bad_alloc&) {
        }
        if (run) return offload::post_job(call_.form.call, std::move(run), call_.comm, request);
        by_.own->end_sequence_number(by_.own->take_sequence_number());  // as many as the others
        return out_of_memory(call_.comm);
    }

    const CollectiveCall& call_;
    const Candidate& by_;
    const Operands what_;
    NodeParts& parts_;
    MPI_Request requests_[most_carried] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int error_ = MPI_SUCCESS;
};

}  // namespace

std::optional<int> allreduce_by_slices(const CollectiveCall& call, const Candidate& by,
                                       const Operands& what) noexcept {
    const Call name = call.form.call;
    NodeParts* parts = by.own->obtain_node_parts(name, PrivateComm::NodeMemory::lines);
    if (parts == nullptr || parts->slices() == 0) return std::nullopt;
    parts = by.own->obtain_node_parts(name, PrivateComm::NodeMemory::staging_buffers);
    if (parts == nullptr) return std::nullopt;
    offload::issue_what_was_posted();
    const Turn timed(by.turn);
    return AllreduceBySlices(call, by, what, *parts).run();
}

}  // namespace vecmpi::pipeline
