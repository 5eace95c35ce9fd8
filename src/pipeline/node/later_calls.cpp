// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking and persistent forms: whether a queue serves them, and requests that keep theirs.
#include <new>
#include <utility>

#include "call_rules.hpp"
#include "neighbourhood.hpp"

namespace vecmpi::pipeline::node {

// Mailboxes and staging buffers as of another communicator of the same ranks.
std::shared_ptr<NodeQueue> make_node_queue(Call call, MPI_Comm comm, int ranks) noexcept {
    const offload::DirectCall scope(call);
    std::shared_ptr<NodeQueue> queue;
    try {
        queue = std::make_shared<NodeQueue>();
    } catch (const std::bad_alloc&) {
    }
    const bool can = queue != nullptr && queue->fiber.make_stack();
    if (!offload::all_can(comm, can && !offload::session_was_opened())) return nullptr;
    queue->node = make_node_comm(comm, ranks);
    if (!queue->node) {
        count(Counter::decline_no_arena);
        return nullptr;
    }
    StagedCollectives* const staged = queue->node->obtain_staged(comm, SlotSize::large);
    if (staged == nullptr) return nullptr;
    if (degrees_of(comm)) queue->node->obtain_neighbourhood(call, comm);
    staged->run_in(queue->fiber);
    return queue;
}

namespace {

bool has_neighbours(Collective collective) noexcept {
    return collective >= Collective::neighbor_allgather &&
           collective <= Collective::neighbor_alltoallw;
}

// Of a persistent request.
class KeptCall final : public offload::JobSource {
  public:
    KeptCall(LaterCall later, std::unique_ptr<StagedWork> work) noexcept
        : later_(std::move(later)), work_(std::move(work)) {}
    std::unique_ptr<offload::Job> start(int* error) noexcept override {
        std::unique_ptr<offload::Job> job(new (std::nothrow)
                                              StagedJob(later_.queue, *work_, later_.by));
        if (!job) *error = MPI_ERR_NO_MEM;
        return job;
    }

  private:
    const LaterCall later_;
    const std::unique_ptr<StagedWork> work_;
};

template <class Keep>
bool has_memory_to(const Keep& keep) noexcept {
    try {
        keep();
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

}  // namespace

bool keep_types(StagedWork& work) noexcept {
    return has_memory_to([&work]() { work.keep_types(); });
}

std::optional<LaterCall> later_call(const CollectiveForm& form, const NodeSite& site, MPI_Comm comm,
                                    const CallSize& size) noexcept {
    if (form.request == nullptr || !offload::jobs_are_served()) return std::nullopt;
    LaterCall later{nullptr, Transport::copy_in_copy_out};
    if (site.node != nullptr) later.by = site.node->likely_transport(size.collective, size.bytes);
    if (later.by == Transport::library) {
        count(Counter::decline_slower);
        note_node_decline();
        return std::nullopt;
    }
    if (form.kind == CollectiveForm::Kind::persistent) {
        later.queue = make_node_queue(form.call, comm, site.ranks);
    } else if (site.node != nullptr) {
        site.node->poll_now_and_then();
        later.queue = site.node->queue();
    }
    if (!later.queue) return std::nullopt;
    NodeComm& node = *later.queue->node;
    if (has_neighbours(size.collective) && node.neighbourhood() == nullptr) return std::nullopt;
    if (!node.staged()->allows_single_copy()) later.by = Transport::copy_in_copy_out;
    return later;
}

// Every rank has a request for it, or none.
std::optional<int> keep_for_starts(const CollectiveForm& form, MPI_Comm comm, LaterCall later,
                                   std::unique_ptr<StagedWork> work) noexcept {
    std::unique_ptr<offload::JobSource> kept;
    const int ranks = later.queue->node->ranks();
    if (work && has_memory_to([&]() { work->keep_arrays(ranks); }))
        kept.reset(new (std::nothrow) KeptCall(std::move(later), std::move(work)));
    const bool made =
        offload::make_persistent_job(form.call, comm, std::move(kept), form.request) == MPI_SUCCESS;
    const bool all_made = [&]() noexcept {
        const offload::DirectCall scope(form.call);
        return offload::all_can(comm, made);
    }();
    if (all_made) return MPI_SUCCESS;
    if (made) offload::request_free(form.request);
    return std::nullopt;
}

}  // namespace vecmpi::pipeline::node
