// SPDX-License-Identifier: BSD-3-Clause
// NodeComms: made with their mailboxes and staging buffers, used, given back.
#include "node_comm.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/api/needs.hpp"
#include "neighbourhood.hpp"
#include "pipeline/node/api.hpp"
#include "staged_work.hpp"

namespace vecmpi::pipeline::node {

namespace {

// Where each rank's mailbox lies, exchanged by all.
struct MailboxAddress {
    ArenaAddress arena;
    uint64_t token = 0;  // 0: no mailbox
    uint32_t mailbox = 0;
};
static_assert(std::is_trivially_copyable_v<MailboxAddress>);

bool map_all(const std::vector<MailboxAddress>& addresses, int rank, Mailbox* own,
             std::vector<MailboxOfRank>& mailboxes) noexcept {
    for (size_t r = 0; r < addresses.size(); ++r) {
        const MailboxAddress& address = addresses[r];
        if (address.token == 0) return false;
        Mailbox* const mailbox = static_cast<int>(r) == rank
                                     ? own
                                     : map_mailbox(address.arena, address.mailbox, address.token);
        if (mailbox == nullptr) return false;
        mailboxes[r] = {mailbox, address.token};
    }
    return true;
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

// 1. Are all on this node, with memory for the answers and without a GPU, whose buffers we cannot
// read? 2. Exchange addresses. 3. Could everyone map everyone?
std::unique_ptr<NodeComm> make_node_comm(MPI_Comm comm, int ranks) noexcept {
    const NoCancellation scope;
    offload::pending_for_ever();
    constexpr int most_ranks = 1 << Mailbox::butterfly_lines;
    std::vector<MailboxAddress> addresses;
    std::vector<MailboxOfRank> mailboxes;
    MailboxAddress mine;
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
    if (offload::all_can(comm, made != nullptr)) {
        FoundOnNode found = found_on_node(ranks);  // the first rank's, on all
        real.Bcast(&found, sizeof found, MPI_BYTE, 0, comm);
        made->adopt(found);
        set_need(Need::later_looks, true);
        return made;
    }
    if (!made && own != nullptr) return_mailbox(own);
    return nullptr;
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

NodeCall NodeComm::begin_call(Call call, MPI_Comm comm, Collective collective,
                              size_t bytes) noexcept {
    StagedCollectives* staged = nullptr;
    if (!goes_in_line(collective, bytes)) {
        const SlotSize slots = StagedCollectives::slots_wanted(collective, bytes, ranks());
        staged = staged_with(slots);
        if (staged == nullptr) [[unlikely]] {
            staged = obtain_staged_for(call, comm, slots, bytes);
            if (staged == nullptr) return {};
        }
        poll_now_and_then();
    }
    RowTrial& one = trials_.of(collective, bytes);
    const unsigned winner = one.trial.winner();
    if (winner == base::Trial::open || one.is_check_due()) [[unlikely]]
        return begin_turn(staged, collective, bytes);
    return call_by(winner, staged);
}

StagedCollectives* NodeComm::obtain_staged_for(Call call, MPI_Comm comm, SlotSize slots,
                                               size_t bytes) noexcept {
    if (staging_[static_cast<size_t>(slots)] == Staging::refused || leaves_long_call(bytes))
        return nullptr;
    const offload::DirectCall scope(call);
    return obtain_staged(comm, slots);
}

bool NodeComm::leaves_long_call(size_t bytes) noexcept {
    const bool leaves = settings().intranode != IntranodeMode::on &&
                        are_few_long_calls(bytes, moved_in_long_calls_);
    moved_in_long_calls_ += leaves ? bytes : 0;
    return leaves;
}

// What was found on another communicator may not be allowed on this one.
NodeCall NodeComm::call_by(unsigned transport, StagedCollectives* staged) noexcept {
    auto by = static_cast<Transport>(transport);
    if (by == Transport::library) {
        count(Counter::decline_slower);
        // The library's own calls are not offered to other paths.
        if (!offload::is_reentrant()) note_node_decline();
        return {};
    }
    if (by == Transport::single_copy && (staged == nullptr || !staged->allows_single_copy()))
        by = Transport::copy_in_copy_out;
    return {this, staged, by};
}

StagedCollectives* NodeComm::obtain_staged(MPI_Comm comm, SlotSize wanted) noexcept {
    Staging& small = staging_[static_cast<size_t>(SlotSize::small)];
    Staging& large = staging_[static_cast<size_t>(SlotSize::large)];
    const auto decide = [](Staging& slots, bool are_made) noexcept {
        slots = are_made ? Staging::made : Staging::refused;
        if (!are_made) count(Counter::decline_no_staging_buffer);
    };
    if (small == Staging::not_made) {
        make_staged(comm);
        decide(small, staged_ != nullptr);
        if (staged_)
            count(Counter::node_staging_buffers);
        else
            large = Staging::refused;
    }
    if (wanted == SlotSize::large && large == Staging::not_made)
        decide(large, make_large_slots(comm));
    return staged_with(wanted);
}

Neighbourhood* NodeComm::obtain_neighbourhood(Call call, MPI_Comm comm) noexcept {
    if (!std::exchange(neighbourhood_decided_, true)) {
        const offload::DirectCall scope(call);
        neighbourhood_ = learn_neighbourhood(comm);
        if (!neighbourhood_) count(Counter::decline_topology);
    }
    return neighbourhood_.get();
}

void NodeComm::obtain_queue(Call call, MPI_Comm comm) noexcept {
    queue_decided_ = true;
    queue_ = make_node_queue(call, comm, ranks());
}

namespace {
// The same of the staging buffers.
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
    const bool are_few = ranks() <= most_ranks_of_wide_ring;
    own_buffer_ = take_staging_buffer(are_few ? RingWidth::wide : RingWidth::narrow);
    const StagingAddress mine{this_process(), own_buffer_};
    real.Allgather(&mine, sizeof mine, MPI_BYTE, addresses.data(), sizeof mine, MPI_BYTE, comm);
    RingWidth width = RingWidth::wide;
    for (const StagingAddress& one : addresses)
        if (width_of_staging_buffer(one.buffer) == RingWidth::narrow) width = RingWidth::narrow;
    const RingShape large = large_ring(width, ranks());
    bool all_found = true, all_readable = settings().single_copy != SIZE_MAX;
    for (size_t r = 0; r < p; ++r) {
        processes[r] = addresses[r].process;
        found[r] = staging_buffer_of(mailboxes_[r].mailbox, addresses[r].buffer);
        all_found = all_found && found[r] != nullptr;
        if (found[r] != nullptr)
            map_small_slots(*found[r],
                            static_cast<int>(r) == rank() ? Touch::writes : Touch::reads);
        all_readable = all_readable && is_readable(processes[r]);
    }
    try {
        if (all_found)
            staged_ = std::make_unique<StagedCollectives>(rank(), std::move(found), large, doors_);
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

// Many communicators never need them, and they take most of the memory and of the time.
bool NodeComm::make_large_slots(MPI_Comm comm) noexcept {
    const NoCancellation scope;
    if (!offload::all_can(comm, give_large_slots(own_buffer_))) return false;
    staged_->map_large_slots();
    return true;
}

void NodeComm::poll_now_and_then() noexcept {
    constexpr uint32_t calls_between_polls = 16;
    if (++looks_ % calls_between_polls == 0) offload::make_progress();
}

// Waits until everyone has read the line that is written again.
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

}  // namespace vecmpi::pipeline::node
