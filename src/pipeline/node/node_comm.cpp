// SPDX-License-Identifier: BSD-3-Clause
// Mailboxes beside communicators: made, found by the program's handle, given back with it.
#include "node_comm.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

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
// The last one that never will have a node while it lives: of one rank, or between two groups.
thread_local constinit LastFound last_declined __attribute__((tls_model("initial-exec")));

thread_local constinit bool node_declined __attribute__((tls_model("initial-exec"))) = false;

// A call with as many bytes counts for one more.
constexpr size_t bytes_of_one_call = size_t{16} << 10;

// What each rank tells the others.
struct ReadableMemory {
    ArenaAddress arena;
    uint64_t token = 0;  // 0: no mailbox
    uint32_t mailbox = 0;
};
static_assert(std::is_trivially_copyable_v<ReadableMemory>);

bool map_all(const std::vector<ReadableMemory>& addresses, int rank, Mailbox* own,
             std::vector<MailboxOfRank>& mailboxes) noexcept {
    for (size_t r = 0; r < addresses.size(); ++r) {
        const ReadableMemory& readable = addresses[r];
        if (readable.token == 0) return false;
        Mailbox* const mailbox =
            static_cast<int>(r) == rank
                ? own
                : map_mailbox(readable.arena, readable.mailbox, readable.token);
        if (mailbox == nullptr) return false;
        mailboxes[r] = {mailbox, readable.token};
    }
    return true;
}

bool may_serve(MPI_Comm comm, int* ranks) noexcept {
    if (!library::is_comm_handle(comm)) return false;
    const offload::CommTraits traits = offload::comm_traits(comm);
    *ranks = traits.size;
    return !traits.inter && traits.world_only && traits.size > 1;
}

NodeSite site_of(NodeComm& node) noexcept { return {&node, false, node.rank(), node.ranks()}; }

// No entry is made for what is no communicator of this kind, and nothing at all is kept of what is
// no communicator yet. One that was served stays so in the
// callbacks of MPI_Finalize, where nothing is agreed any more.
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

std::unique_ptr<NodeComm> make_of(int rank, std::vector<MailboxOfRank> mailboxes) noexcept {
    std::vector<Door*> doors;
    try {
        for (const MailboxOfRank& one : mailboxes) doors.push_back(door_of(one.mailbox));
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
    return std::unique_ptr<NodeComm>(new (std::nothrow) NodeComm(
        rank, std::move(mailboxes), Doors(std::move(doors)), kernels::promised_line_width()));
}

}  // namespace

// 1. Are all on this node, with memory for the answers and no GPU, whose buffers we cannot read? 2.
// Who lies where? 3. Could everyone map everyone? Null on all ranks where one of them could not.
std::unique_ptr<NodeComm> make_node_comm(MPI_Comm comm, int ranks) noexcept {
    const NoCancellation scope;
    offload::pending_for_ever();
    constexpr int most_ranks = 1 << Mailbox::butterfly_lines;
    std::vector<ReadableMemory> addresses;
    std::vector<MailboxOfRank> mailboxes;
    ReadableMemory mine;
    Mailbox* own = nullptr;
    try {
        addresses.resize(static_cast<size_t>(ranks));
        mailboxes.resize(static_cast<size_t>(ranks));
    } catch (const std::bad_alloc&) {
    }
    const bool has_memory = mailboxes.size() == static_cast<size_t>(ranks);
    if (ranks >= most_ranks ||
        !offload::all_can(comm, has_memory && !offload::gpu_runtime_is_loaded(),
                          hash_of_node_name()))
        return nullptr;
    if (own_arena(&mine.arena)) own = take_mailbox(&mine.mailbox, &mine.token);
    int rank = 0;
    real.Comm_rank(comm, &rank);
    real.Allgather(&mine, sizeof mine, MPI_BYTE, addresses.data(), sizeof mine, MPI_BYTE, comm);
    std::unique_ptr<NodeComm> made;
    if (map_all(addresses, rank, own, mailboxes)) made = make_of(rank, std::move(mailboxes));
    if (offload::all_can(comm, made != nullptr)) return made;
    if (!made && own != nullptr) return_mailbox(own);
    return nullptr;
}

bool take_node_decline() noexcept { return std::exchange(node_declined, false); }
void note_node_decline() noexcept { node_declined = true; }

NodeSite node_site(MPI_Comm comm) noexcept {
    if (!offload::engine_runs()) return {};
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
            site.node->make_queue(call, comm);
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
        return nullptr;  // not a hundred bytes left: this rank waits for others that go on
    }
}

NodeComm::NodeComm(int rank, std::vector<MailboxOfRank> mailboxes, Doors doors,
                   kernels::LineWidth width) noexcept
    : plan_{static_cast<int>(mailboxes.size()), rank},
      mailboxes_(std::move(mailboxes)),
      doors_(std::move(doors)) {
    for (size_t bytes = 0; bytes <= kernels::line_data_bytes; ++bytes)
        stores_[bytes] = kernels::line_store(width, bytes);
}

// Peers may still have to read what this rank wrote last. The mailbox is used again only when they
// have closed theirs.
NodeComm::~NodeComm() {
    Mailbox* const own = &mailbox(rank());
    retire_mailbox(own, own_buffer_, std::move(mailboxes_));
}

StagedCall NodeComm::staged_for(Call call, MPI_Comm comm, Collective collective,
                                size_t bytes) noexcept {
    if (!staged_decided_) {
        const offload::DirectCall scope(call);
        obtain_staged(comm);
    }
    if (!staged_) return {};
    const Transport transport = transport_for(call, comm, collective, bytes);
    if (transport == Transport::library) {
        count(Counter::decline_slower);
        // The library's own calls are not offered to other paths.
        if (!offload::is_reentrant()) note_node_decline();
        return {};
    }
    poll_now_and_then();
    return {staged_.get(), transport};
}

StagedCollectives* NodeComm::obtain_staged(MPI_Comm comm) noexcept {
    if (!std::exchange(staged_decided_, true)) {
        make_staged(comm);
        count(staged_ ? Counter::node_staging_buffers : Counter::decline_no_staging_buffer);
    }
    return staged_.get();
}

std::shared_ptr<AllreduceQueue> NodeComm::queue() noexcept {
    wants_queue_ = !queue_decided_;
    return queue_;
}

// Mailboxes and staging buffers as of another communicator of the same ranks.
void NodeComm::make_queue(Call call, MPI_Comm comm) noexcept {
    const offload::DirectCall scope(call);
    wants_queue_ = false;
    queue_decided_ = true;
    std::shared_ptr<AllreduceQueue> queue;
    try {
        queue = std::make_shared<AllreduceQueue>();
    } catch (const std::bad_alloc&) {
    }
    if (!offload::all_can(comm, queue != nullptr && !offload::session_was_opened())) return;
    queue->node = make_node_comm(comm, ranks());
    if (!queue->node) return count(Counter::decline_no_arena);
    queue->collectives = queue->node->obtain_staged(comm);
    if (queue->collectives != nullptr) queue_ = std::move(queue);
}

// Where VECMPI_SINGLE_COPY is a size, nothing is tried.
Transport NodeComm::transport_for(Call call, MPI_Comm comm, Collective collective,
                                  size_t bytes) noexcept {
    // What was found on another communicator may not be allowed on this one.
    const auto allowed = [&](Transport wanted) noexcept {
        return wanted == Transport::single_copy && !staged_->allows_single_copy()
                   ? Transport::copy_in_copy_out
                   : wanted;
    };
    const size_t from = settings().single_copy;
    if (from != 0 && from != SIZE_MAX)
        return allowed(bytes >= from ? Transport::single_copy : Transport::copy_in_copy_out);
    if (bytes < tried_bytes.front()) return Transport::copy_in_copy_out;
    std::optional<TransportsBySize>& found = transports_[static_cast<size_t>(collective)];
    if (!found) {
        const offload::DirectCall scope(call);
        const bool may_be_library = settings().intranode == IntranodeMode::automatic;
        found = choose_transports(*staged_, comm, collective, may_be_library);
    }
    return allowed(transport_of(*found, bytes));
}

namespace {
// What each rank tells the others.
struct StagingAddress {
    PeerProcess process;
    uint32_t buffer = no_staging_buffer;
};
}  // namespace

// 1. Which buffer does each rank have? 2. Does everyone see all of them? No rank has one where one
// rank has none. 3. May everyone read everyone's memory?
void NodeComm::make_staged(MPI_Comm comm) noexcept {
    const NoCancellation scope;
    const auto p = static_cast<size_t>(ranks());
    if (ranks() > StagedCollectives::most_ranks) return;
    std::vector<StagingAddress> addresses;
    std::vector<PeerProcess> processes;
    std::vector<StagingBuffer*> found;
    try {
        addresses.resize(p);
        processes.resize(p);
        found.resize(p);
    } catch (const std::bad_alloc&) {
    }
    if (!offload::all_can(comm, found.size() == p && !offload::gpu_runtime_is_loaded())) return;
    own_buffer_ = take_staging_buffer();
    const StagingAddress mine{this_process(), own_buffer_};
    real.Allgather(&mine, sizeof mine, MPI_BYTE, addresses.data(), sizeof mine, MPI_BYTE, comm);
    bool all_found = true, all_readable = settings().single_copy != SIZE_MAX;
    for (size_t r = 0; r < p; ++r) {
        processes[r] = addresses[r].process;
        found[r] = staging_buffer_of(mailboxes_[r].mailbox, addresses[r].buffer);
        all_found = all_found && found[r] != nullptr;
        all_readable = all_readable && is_readable(processes[r]);
    }
    try {
        if (all_found)
            staged_ = std::make_unique<StagedCollectives>(rank(), std::move(found), doors_);
    } catch (const std::bad_alloc&) {
    }
    if (!offload::all_can(comm, staged_ != nullptr)) {
        staged_.reset();
        if (own_buffer_ != no_staging_buffer)
            return_staging_buffer(std::exchange(own_buffer_, no_staging_buffer));
    } else if (offload::all_can(comm, all_readable)) {
        staged_->allow_single_copy(std::move(processes));
    }
}

void NodeComm::poll_now_and_then() noexcept {
    constexpr uint32_t calls_between_polls = 16;
    if (++calls_ % calls_between_polls == 0) offload::make_progress();
}

// A line is written again: everyone must have read it.
uint64_t NodeComm::begin(OneWay kind) noexcept {
    poll_now_and_then();
    const auto at = static_cast<unsigned>(kind);
    SequenceNumbers& numbers = one_way_[at];
    const uint64_t sequence = ++numbers.last;
    if (sequence <= numbers.all_finished + Mailbox::one_way_lines) return sequence;
    const uint64_t awaited = sequence - Mailbox::one_way_lines;
    uint64_t least = UINT64_MAX;
    for (const MailboxOfRank& one : mailboxes_) {
        uint64_t finished = 0;
        offload::wait_for_memory([&]() noexcept {
            finished =
                one.mailbox->finished[at].load(std::memory_order_acquire);  // pairs with end()
            return finished >= awaited;
        });
        least = std::min(least, finished);
    }
    numbers.all_finished = least;
    return sequence;
}

void NodeComm::end(OneWay kind) noexcept {
    const auto at = static_cast<unsigned>(kind);
    mailbox(rank()).finished[at].store(one_way_[at].last, std::memory_order_release);
    doors_.ring_all();
}

void NodeComm::await(const kernels::Line& line, uint64_t sequence) noexcept {
    offload::wait_for_memory([&]() noexcept { return shows(line, sequence); });
}

size_t NodeComm::bcast(kernels::Line& value, size_t bytes, int root) noexcept {
    const uint64_t sequence = begin(OneWay::bcast);
    kernels::Line& from = line(OneWay::bcast, sequence, root);
    size_t root_bytes = bytes;
    if (rank() == root) {
        value.flag = flag_of(sequence, bytes);
        stores_[bytes](&from, &value);
        doors_.ring_all();
    } else {
        await(from, sequence);
        root_bytes = flag_seen(from) >> announced_bytes_shift;
        read_data(from, value, bytes);
    }
    end(OneWay::bcast);
    return root_bytes;
}

void forget_node_comms() noexcept {
    Table::forget_all();
    release_arenas();
}

}  // namespace vecmpi::pipeline::node
