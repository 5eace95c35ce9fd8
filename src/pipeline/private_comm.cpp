// SPDX-License-Identifier: BSD-3-Clause
// Communicators of our own: made, found by the program's handle, and freed with the program's.
#include "private_comm.hpp"

#include <atomic>
#include <bit>
#include <new>
#include <unordered_map>
#include <utility>

#include "vecmpi/pipeline.hpp"

namespace vecmpi {

namespace {

// MPICH has room for about 2000 communicators, which are the program's.
constexpr size_t most_private_comms = 64;
constexpr size_t most_known_schedules = 8;
constexpr size_t most_kept_bytes = size_t{16} << 20;

struct Entry {
    PrivateCommPointer comm;
    bool refused = false;  // by some rank: not asked again
    bool wanted = false;
};

std::mutex mutex;  // of all below
std::unordered_map<MPI_Comm, Entry>& entries() {
    static auto* const map = new std::unordered_map<MPI_Comm, Entry>;  // outlives all callers
    return *map;
}
size_t made = 0;
std::atomic<int> wanted{0};  // entries that are; read without the lock

MPI_Comm create_same_group(MPI_Comm comm) noexcept {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm created = MPI_COMM_NULL;
    real.Comm_group(comm, &group);
    if (real.Comm_create(comm, group, &created) != MPI_SUCCESS) created = MPI_COMM_NULL;
    real.Group_free(&group);
    if (created != MPI_COMM_NULL) real.Comm_set_errhandler(created, MPI_ERRORS_RETURN);
    return created;
}

// 1. Can all? 2. A communicator without attributes. 3. Who is on which node. 4. Has everyone memory
// left?
PrivateCommPointer create(MPI_Comm comm, int ranks, bool may) noexcept {
    const Buffer<int> nodes = allocate<int>(static_cast<size_t>(ranks));
    if (!all_can(comm, may && nodes != nullptr)) return nullptr;
    MPI_Comm created = create_same_group(comm);
    if (created == MPI_COMM_NULL) return nullptr;
    const auto node = static_cast<int>(hash_of_node_name() & 0x7fffffff);
    real.Allgather(&node, 1, MPI_INT, nodes.get(), 1, MPI_INT, created);
    int rank = 0;
    real.Comm_rank(created, &rank);
    PrivateCommPointer result;
    try {
        result = std::make_shared<PrivateComm>(
            created, rank, NodeLayout(std::vector<int>(nodes.get(), nodes.get() + ranks)));
    } catch (const std::bad_alloc&) {
    }
    if (!all_can(comm, result != nullptr)) {
        if (!result) real.Comm_free(&created);
        return nullptr;
    }
    return result;
}

bool same_request(const ScheduleRequest& a, const ScheduleRequest& b) noexcept {
    return a.collective == b.collective && a.algorithm == b.algorithm && a.root == b.root &&
           a.count == b.count && a.blocks == nullptr && b.blocks == nullptr &&
           a.segments == b.segments && a.lanes == b.lanes && a.in_place == b.in_place;
}

}  // namespace

PrivateComm::~PrivateComm() {
    MPI_Comm comm = comm_;
    if (agreement().valid) real.Comm_free(&comm);
}

uint32_t PrivateComm::take_turn() noexcept {
    const std::lock_guard lock(mutex_);
    return next_turn_++;
}

bool PrivateComm::may_begin(uint32_t turn) noexcept {
    const std::lock_guard lock(mutex_);
    return turn - all_ended_before_ < turns_apart;
}

void PrivateComm::end_turn(uint32_t turn) noexcept {
    const std::lock_guard lock(mutex_);
    ended_ |= 1u << (turn - all_ended_before_);
    const int together = std::countr_one(ended_);
    all_ended_before_ += static_cast<uint32_t>(together);
    ended_ = together == 32 ? 0 : ended_ >> together;
}

uint32_t PrivateComm::free_numbers() noexcept {
    const std::lock_guard lock(mutex_);
    return ~taken_numbers_;
}

void PrivateComm::take_number(uint32_t number) noexcept {
    const std::lock_guard lock(mutex_);
    taken_numbers_ |= 1u << number;
}

void PrivateComm::give_number(uint32_t number) noexcept {
    const std::lock_guard lock(mutex_);
    taken_numbers_ &= ~(1u << number);
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
    return {allocate<char>(bytes), bytes};
}

void PrivateComm::give_back(Scratch scratch) noexcept {
    const std::lock_guard lock(mutex_);
    if (scratch.bytes <= most_kept_bytes && scratch.bytes > spare_.bytes)
        std::swap(spare_, scratch);
}

PrivateCommPointer find_private_comm(MPI_Comm comm) noexcept {
    const std::lock_guard lock(mutex);
    const auto found = entries().find(comm);
    return found == entries().end() ? nullptr : found->second.comm;
}

PrivateCommPointer obtain_private_comm(MPI_Comm comm, int ranks) noexcept {
    bool may;
    {
        const std::lock_guard lock(mutex);
        const auto found = entries().find(comm);
        if (found != entries().end() && (found->second.comm || found->second.refused))
            return found->second.comm;
        may = made < most_private_comms;
        made += may;
    }
    PrivateCommPointer created = create(comm, ranks, may);
    const std::lock_guard lock(mutex);
    if (may && !created) --made;
    try {
        Entry& entry = entries()[comm];
        if (std::exchange(entry.wanted, false)) wanted.fetch_sub(1, std::memory_order_relaxed);
        entry.comm = created;
        entry.refused = created == nullptr;
    } catch (const std::bad_alloc&) {
        // Not a hundred bytes left: this rank asks again, and waits for others that do not.
    }
    return created;
}

void want_private_comm(MPI_Comm comm) noexcept {
    const std::lock_guard lock(mutex);
    try {
        Entry& entry = entries()[comm];
        if (entry.comm || entry.refused || entry.wanted) return;
        entry.wanted = true;
        wanted.fetch_add(1, std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {
    }
}

bool private_comms_are_wanted() noexcept { return wanted.load(std::memory_order_relaxed) != 0; }

bool private_comm_is_wanted(MPI_Comm comm) noexcept {
    const std::lock_guard lock(mutex);
    const auto found = entries().find(comm);
    return found != entries().end() && found->second.wanted;
}

// Schedules that still run keep theirs.
PrivateCommHold take_private_comm(MPI_Comm comm) noexcept {
    const std::lock_guard lock(mutex);
    const auto found = entries().find(comm);
    if (found == entries().end()) return nullptr;
    PrivateCommHold taken = std::make_shared<Entry>(std::move(found->second));
    const auto* entry = static_cast<const Entry*>(taken.get());
    if (entry->wanted) wanted.fetch_sub(1, std::memory_order_relaxed);
    if (entry->comm) --made;
    entries().erase(found);
    return taken;
}

void return_private_comm(MPI_Comm comm, PrivateCommHold ours) noexcept {
    if (!ours) return;
    const std::lock_guard lock(mutex);
    auto* entry = static_cast<Entry*>(ours.get());
    if (entry->wanted) wanted.fetch_add(1, std::memory_order_relaxed);
    if (entry->comm) ++made;
    entries()[comm] = std::move(*entry);
}

void forget_private_comms() noexcept {
    std::unordered_map<MPI_Comm, Entry> freed;
    const std::lock_guard lock(mutex);
    std::swap(freed, entries());
    wanted.store(0, std::memory_order_relaxed);
    made = 0;
}

}  // namespace vecmpi
