// SPDX-License-Identifier: BSD-3-Clause
// Communicators of our own: made, found by the program's handle, and freed with the program's.
#include "private_comm.hpp"

#include <atomic>
#include <bit>
#include <new>
#include <utility>

#include "pipeline/api.hpp"
#include "pipeline/api/calls_left.hpp"

namespace vecmpi::pipeline {

constinit std::atomic<int> private_comms_wanted{0};

namespace {

// Counts among them while it is set.
class Wanted {
  public:
    Wanted() = default;
    Wanted(Wanted&& other) noexcept : is_set_(std::exchange(other.is_set_, false)) {}
    Wanted& operator=(Wanted&& other) noexcept {
        std::swap(is_set_, other.is_set_);
        return *this;
    }
    ~Wanted() { clear(); }
    void set() noexcept {
        if (!std::exchange(is_set_, true))
            private_comms_wanted.fetch_add(1, std::memory_order_relaxed);
    }
    void clear() noexcept {
        if (std::exchange(is_set_, false))
            private_comms_wanted.fetch_sub(1, std::memory_order_relaxed);
    }
    bool is_set() const noexcept { return is_set_; }

  private:
    bool is_set_ = false;
};
}  // namespace

struct PrivateCommEntry {
    PrivateCommPointer comm;
    bool refused = false;  // by some rank: not asked again
    Wanted wanted;
    uint64_t calls = 0;  // has_called_often()
};
}  // namespace vecmpi::pipeline

template class vecmpi::offload::CommDeparture<vecmpi::pipeline::PrivateCommEntry>;

namespace vecmpi::pipeline {

namespace {

using Table = offload::CommTable<PrivateCommEntry>;

constexpr size_t most_known_schedules = 8;
constexpr size_t most_kept_bytes = size_t{16} << 20;

// MPI_COMM_NULL for who is not in it, and where the library refuses.
MPI_Comm split(MPI_Comm comm, int color, int key) noexcept {
    MPI_Comm part = MPI_COMM_NULL;
    if (real.Comm_split(comm, color, key, &part) != MPI_SUCCESS) return MPI_COMM_NULL;
    if (part != MPI_COMM_NULL) real.Comm_set_errhandler(part, MPI_ERRORS_RETURN);
    return part;
}

MPI_Comm create_same_group(MPI_Comm comm) noexcept {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm created = MPI_COMM_NULL;
    real.Comm_group(comm, &group);
    if (real.Comm_create(comm, group, &created) != MPI_SUCCESS) created = MPI_COMM_NULL;
    real.Group_free(&group);
    if (created != MPI_COMM_NULL) real.Comm_set_errhandler(created, MPI_ERRORS_RETURN);
    return created;
}

// Nothing: out of memory.
std::optional<NodeLayout> layout_of(const int* nodes, int ranks) noexcept {
    try {
        return NodeLayout(std::vector<int>(nodes, nodes + ranks));
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
}

// 1. Can all? 2. A communicator without attributes. 3. Who is on which node, and what is known of
// such communicators. 4. Has everyone memory left?
PrivateCommPointer create(MPI_Comm comm, int ranks, bool may) noexcept {
    const Buffer<int> nodes = allocate<int>(static_cast<size_t>(ranks));
    const bool can = nodes != nullptr && !offload::gpu_runtime_is_loaded();
    if (!offload::all_can(comm, may && can)) return nullptr;
    MPI_Comm created = create_same_group(comm);
    if (created == MPI_COMM_NULL) return nullptr;
    const auto node = static_cast<int>(hash_of_node_name() & 0x7fffffff);
    real.Allgather(&node, 1, MPI_INT, nodes.get(), 1, MPI_INT, created);
    int rank = 0;
    real.Comm_rank(created, &rank);
    PrivateCommPointer result;
    const auto layout = layout_of(nodes.get(), ranks);
    FoundOverNodes found{};
    if (layout) found = found_over_nodes(PrivateComm::shape_of(*layout));
    real.Bcast(&found, sizeof found, MPI_BYTE, 0, created);
    try {
        if (layout) result = std::make_shared<PrivateComm>(created, rank, *layout, found);
    } catch (const std::bad_alloc&) {
    }
    if (!offload::all_can(comm, result != nullptr)) {
        if (!result) real.Comm_free(&created);
        return nullptr;
    }
    result->serve_requests(offload::all_can(comm, !offload::session_was_opened()));
    return result;
}

// Than with messages on the nodes. Measured: docs/intranode.md, "Several nodes".
bool is_faster_through_memory(const NodeLayout& layout) noexcept {
    return layout.ranks() >= 4 * layout.nodes();
}

bool same_request(const ScheduleRequest& a, const ScheduleRequest& b) noexcept {
    return a.collective == b.collective && a.algorithm == b.algorithm && a.root == b.root &&
           a.count == b.count && a.blocks == nullptr && b.blocks == nullptr &&
           a.segments == b.segments && a.lanes == b.lanes && a.in_place == b.in_place &&
           a.slices == b.slices;
}

}  // namespace

NodeParts::~NodeParts() {
    MPI_Comm leaders = leaders_;
    if (leaders != MPI_COMM_NULL && offload::agreement().valid) real.Comm_free(&leaders);
}

NodeParts* PrivateComm::obtain_node_parts(Call call, NodeMemory memory) noexcept {
    if (!std::exchange(node_parts_decided_, true)) {
        const offload::DirectCall scope(call);
        node_parts_ = make_node_parts();
        if (node_parts_) count(Counter::node_teams);
    }
    if (!node_parts_ || memory == NodeMemory::lines) return node_parts_.get();
    if (!node_parts_->has_staging_buffers_) {
        const offload::DirectCall scope(call);
        node_parts_->has_staging_buffers_ = make_staged(node_parts_->team());
    }
    return *node_parts_->has_staging_buffers_ ? node_parts_.get() : nullptr;
}

bool PrivateComm::make_staged(node::NodeTeam& team) noexcept {
    MPI_Comm on_node = split(comm_, layout_.node_of(rank_), rank_);
    const bool has_comm = offload::all_can(comm_, on_node != MPI_COMM_NULL);
    const bool has_buffers = has_comm && team.make_staged(on_node);
    if (on_node != MPI_COMM_NULL) real.Comm_free(&on_node);
    return offload::all_can(comm_, has_buffers);
}

// 1. Who shares this node? 2. Memory for them. 3. One rank of each node. 4. Did all get all?
std::unique_ptr<NodeParts> PrivateComm::make_node_parts() noexcept {
    const IntranodeMode mode = settings().intranode;
    if (mode == IntranodeMode::off || settings().reproducible) return nullptr;
    if (layout_.nodes() == 1 || layout_.most_ranks_on_a_node() == 1) return nullptr;
    if (mode != IntranodeMode::on && !is_faster_through_memory(layout_)) return nullptr;
    const bool is_first = layout_.place_on_node(rank_) == 0;
    MPI_Comm on_node = split(comm_, layout_.node_of(rank_), rank_);
    std::unique_ptr<node::NodeTeam> team;
    if (offload::all_can(comm_, on_node != MPI_COMM_NULL)) team = node::NodeTeam::make(on_node);
    if (on_node != MPI_COMM_NULL) real.Comm_free(&on_node);
    if (!offload::all_can(comm_, team != nullptr)) return nullptr;
    MPI_Comm leaders = split(comm_, is_first ? 0 : MPI_UNDEFINED, rank_);
    std::unique_ptr<NodeParts> parts;
    if (!is_first || leaders != MPI_COMM_NULL)
        parts.reset(new (std::nothrow) NodeParts(std::move(team), leaders, layout_));
    if (!parts && leaders != MPI_COMM_NULL) real.Comm_free(&leaders);
    if (!offload::all_can(comm_, parts != nullptr)) parts.reset();
    return parts;
}

// Schedules that still run keep theirs.
PrivateComm::~PrivateComm() {
    alive_.fetch_sub(1, std::memory_order_relaxed);
    MPI_Comm comm = comm_;
    if (offload::agreement().valid) real.Comm_free(&comm);
}

uint32_t PrivateComm::take_sequence_number() noexcept {
    const std::lock_guard lock(mutex_);
    return next_sequence_number_++;
}

bool PrivateComm::may_begin(uint32_t number) noexcept {
    const std::lock_guard lock(mutex_);
    return number - all_ended_before_ < sequence_numbers_apart;
}

void PrivateComm::end_sequence_number(uint32_t number) noexcept {
    const std::lock_guard lock(mutex_);
    ended_ |= 1u << (number - all_ended_before_);
    const int together = std::countr_one(ended_);
    all_ended_before_ += static_cast<uint32_t>(together);
    ended_ = together == 32 ? 0 : ended_ >> together;
}

Choice PrivateComm::choice_for(const ChoiceFacts& facts) noexcept {
    const std::lock_guard lock(mutex_);
    std::optional<Chosen>& last = chosen_[static_cast<size_t>(facts.collective)];
    if (!last || last->facts != facts) last = Chosen{facts, choose(facts, settings())};
    return last->choice;
}

std::shared_ptr<const Schedule> PrivateComm::schedule_for(const ScheduleRequest& request) noexcept {
    try {
        const std::lock_guard lock(mutex_);
        for (const Known& known : known_)
            if (same_request(known.request, request)) return known.schedule;
        auto schedule = std::make_shared<const Schedule>(build_schedule(request));
        if (request.blocks != nullptr) return schedule;
        if (known_.size() < most_known_schedules) {
            known_.push_back({request, schedule});
        } else {
            known_[oldest_known_] = {request, schedule};
            oldest_known_ = (oldest_known_ + 1) % most_known_schedules;
        }
        return schedule;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

Scratch PrivateComm::take_scratch(size_t bytes) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (spare_.memory && spare_.bytes >= bytes) return std::exchange(spare_, Scratch{});
    }
    return {allocate<unsigned char>(bytes), bytes};
}

void PrivateComm::give_back(Scratch scratch) noexcept {
    const std::lock_guard lock(mutex_);
    if (scratch.bytes <= most_kept_bytes && scratch.bytes > spare_.bytes)
        std::swap(spare_, scratch);
}

PrivateCommPointer find_private_comm(MPI_Comm comm) noexcept {
    const std::lock_guard lock(Table::mutex);
    const PrivateCommEntry* const entry = Table::find(comm);
    return entry ? entry->comm : nullptr;
}

// MPICH has room for about 2000 communicators, which are the program's.
PrivateCommPointer obtain_private_comm(MPI_Comm comm, int ranks, size_t most) noexcept {
    bool may;
    {
        const std::lock_guard lock(Table::mutex);
        const PrivateCommEntry* const entry = Table::find(comm);
        if (entry && (entry->comm || entry->refused)) return entry->comm;
        may = PrivateComm::alive() < most;
    }
    PrivateCommPointer created = create(comm, ranks, may);
    const std::lock_guard lock(Table::mutex);
    try {
        PrivateCommEntry& entry = Table::obtain(comm);
        entry.wanted.clear();
        entry.comm = created;
        entry.refused = created == nullptr;
    } catch (const std::bad_alloc&) {
        // Not a hundred bytes left: this rank asks again, and waits for others that do not.
    }
    return created;
}

void want_private_comm(MPI_Comm comm) noexcept {
    const std::lock_guard lock(Table::mutex);
    try {
        PrivateCommEntry& entry = Table::obtain(comm);
        if (!entry.comm && !entry.refused) entry.wanted.set();
    } catch (const std::bad_alloc&) {
    }
}

bool has_called_often(MPI_Comm comm, uint64_t few) noexcept {
    const std::lock_guard lock(Table::mutex);
    try {
        return ++Table::obtain(comm).calls > few;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

PrivateCommState private_comm_state(MPI_Comm comm) noexcept {
    const std::lock_guard lock(Table::mutex);
    const PrivateCommEntry* const entry = Table::find(comm);
    if (entry == nullptr) return PrivateCommState::nothing;
    if (entry->refused) return PrivateCommState::refused;
    if (entry->comm) return PrivateCommState::private_comm;
    return entry->calls != 0 ? PrivateCommState::counting : PrivateCommState::nothing;
}

uint64_t private_comms_epoch() noexcept { return Table::epoch(); }

bool private_comm_is_wanted(MPI_Comm comm) noexcept {
    const std::lock_guard lock(Table::mutex);
    const PrivateCommEntry* const entry = Table::find(comm);
    return entry && entry->wanted.is_set();
}

void forget_private_comms() noexcept { Table::forget_all(); }

}  // namespace vecmpi::pipeline
