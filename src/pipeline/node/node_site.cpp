// SPDX-License-Identifier: BSD-3-Clause
// A communicator's entry is found by the program's handle, and goes with the communicator.
#include "node_site.hpp"

#include <mutex>
#include <new>
#include <utility>

#include "base/api/needs.hpp"
#include "pipeline/api/calls_left.hpp"
#include "pipeline/node/api.hpp"

namespace vecmpi::pipeline::node {

struct NodeCommEntry {
    std::unique_ptr<NodeComm> node;
    uint64_t calls = 0;  // blocking collectives so far, while it is not decided
    bool refused = false;
};
}  // namespace vecmpi::pipeline::node

template class vecmpi::offload::CommDeparture<vecmpi::pipeline::node::NodeCommEntry>;

namespace vecmpi::pipeline::node {

namespace {

using Table = offload::CommTable<NodeCommEntry>;

// What a thread found last.
struct LastFound {
    MPI_Comm comm = MPI_COMM_NULL;
    uint64_t epoch = 0;
    NodeComm* node = nullptr;
};
thread_local constinit LastFound last_found __attribute__((tls_model("initial-exec")));
// The last one that never gets a NodeComm: of one rank, or between two groups.
thread_local constinit LastFound last_declined __attribute__((tls_model("initial-exec")));

thread_local constinit bool node_declined __attribute__((tls_model("initial-exec"))) = false;

// A call with so many bytes counts for two, and so on.
constexpr size_t bytes_of_one_call = size_t{16} << 10;

bool may_serve(MPI_Comm comm, int* ranks) noexcept {
    if (!library::is_comm_handle(comm)) return false;
    const offload::CommTraits traits = offload::comm_traits(comm);
    *ranks = traits.size;
    return !traits.inter && traits.world_only && traits.size > 1;
}

NodeSite site_of(NodeComm& node) noexcept { return {&node, false, node.rank(), node.ranks()}; }

// Makes no entry: the handle may be no communicator that can be served, or none at all. One that
// was served stays so in the callbacks of MPI_Finalize, where nothing is agreed any more.
NodeSite look_up(MPI_Comm comm) noexcept {
    NodeSite site;
    if (settings().intranode == IntranodeMode::off) return site;
    const uint64_t seen = Table::epoch();
    bool counted = false;
    {
        const std::lock_guard lock(Table::mutex);
        const NodeCommEntry* const entry = Table::find(comm);
        if (entry != nullptr && (entry->node || entry->refused)) {
            NodeComm* const node = entry->node.get();
            last_found = {comm, seen, node};
            return node ? site_of(*node) : site;
        }
        counted = entry != nullptr && entry->calls != 0;
    }
    if (counted) {
        real.Comm_size(comm, &site.ranks);
    } else if (!may_serve(comm, &site.ranks)) {
        if (site.ranks > 0) last_declined = {comm, seen, nullptr};
        return site;
    }
    real.Comm_rank(comm, &site.rank);
    site.undecided = true;
    return site;
}

// True for the call that makes the NodeComm.
bool count_call(MPI_Comm comm, size_t bytes) {
    const std::lock_guard lock(Table::mutex);
    uint64_t& calls = Table::obtain(comm).calls;
    calls += 1 + bytes / bytes_of_one_call;
    return calls > calls_before_sharing();
}

}  // namespace

bool take_node_decline() noexcept { return std::exchange(node_declined, false); }
void note_node_decline() noexcept { node_declined = true; }

uint64_t node_sites_epoch() noexcept { return Table::epoch(); }

NodeSite node_site(MPI_Comm comm) noexcept {
    if (!offload::engine_runs() || is_surely_over_hosts(comm)) return {};
    const uint64_t epoch = Table::epoch();
    if (last_found.comm == comm && last_found.epoch == epoch)
        return last_found.node ? site_of(*last_found.node) : NodeSite{};
    if (last_declined.comm == comm && last_declined.epoch == epoch) return {};
    return look_up(comm);
}

NodeComm* node_comm_for(const NodeSite& site, Call call, MPI_Comm comm, size_t bytes) noexcept {
    if (site.node != nullptr) {
        offload::issue_what_was_posted();
        if (site.node->wants_queue()) [[unlikely]]
            site.node->obtain_queue(call, comm);
        return site.node;
    }
    try {
        if (!count_call(comm, bytes)) return nullptr;
        std::unique_ptr<NodeComm> made;
        {
            const offload::DirectCall scope(call);
            made = make_node_comm(comm, site.ranks);
        }
        count(made ? Counter::node_comms : Counter::decline_no_arena);
        const std::lock_guard lock(Table::mutex);
        NodeCommEntry& entry = Table::obtain(comm);
        entry.refused = made == nullptr;
        entry.node = std::move(made);
        return entry.node.get();
    } catch (const std::bad_alloc&) {
        return nullptr;  // not a hundred bytes left; this rank may wait for others that go on
    }
}

void forget_node_comms() noexcept {
    Table::forget_all();
    set_need(Need::later_looks, false);
    offload::forget_returns_from_memory();
    release_arenas();
}

}  // namespace vecmpi::pipeline::node
