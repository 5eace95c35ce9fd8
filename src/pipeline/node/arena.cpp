// SPDX-License-Identifier: BSD-3-Clause
// Arenas: made, mapped, divided into mailboxes.
#include "arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

namespace vecmpi::pipeline::node {
namespace {

struct Retired {
    Mailbox* own;
    uint32_t buffer;
    std::vector<MailboxOfRank> all;
};

struct Mapped {
    ArenaAddress address;
    char* memory;
};

// Of this process; never destroyed, since callers may outlive static objects.
struct State {
    std::mutex mutex;  // of all below
    bool tried = false;
    char* memory = nullptr;  // the own arena
    OwnDescriptor file;
    ArenaAddress address;
    std::vector<uint32_t> free;          // mailboxes that have pages
    std::vector<uint32_t> free_buffers;  // with room for all
    uint32_t mailboxes_with_pages = 0;   // the first ones
    // Of each width: the first ones of it.
    uint32_t buffers_with_pages[2] = {};
    bool has_large_slots[staging_buffers_per_arena] = {};
    std::vector<Retired> retired;
    std::vector<Mapped> mapped;
};
State& state() noexcept {
    static auto* const made = new State;
    return *made;
}

Mailbox* mailbox_at(char* arena, uint32_t index) noexcept {
    return reinterpret_cast<Mailbox*>(arena + door_bytes + size_t{index} * mailbox_bytes);
}

StagingBuffer* staging_buffer_at(char* arena, uint32_t index) noexcept {
    return reinterpret_cast<StagingBuffer*>(arena + staging_buffer_offset(index));
}

// A forked child has neither the memory nor any business with it.
char* map_shared(int descriptor) noexcept {
    void* const memory =
        mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) return nullptr;
    madvise(memory, arena_bytes, MADV_DONTFORK);
    return static_cast<char*>(memory);
}

uint64_t inode_of(int descriptor) noexcept {
    struct stat status {};
    const bool known =
        fstat(descriptor, &status) == 0 && static_cast<size_t>(status.st_size) >= mailboxes_bytes;
    return known ? static_cast<uint64_t>(status.st_ino) : 0;
}

// Beyond this limit posix_fallocate would raise a signal.
bool may_make_files(size_t bytes) noexcept {
    rlimit limit{};
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
}

// Real pages, on this rank's NUMA node: a hole would be filled, or not, when somebody writes there.
bool give_pages(int descriptor, size_t first, size_t bytes) noexcept {
    if (!may_make_files(first + bytes)) return false;
    int error = EINTR;
    for (int tries = 0; tries < 100 && error == EINTR; ++tries)  // a program's timer
        error = posix_fallocate(descriptor, static_cast<off_t>(first), static_cast<off_t>(bytes));
    return error == 0;
}

// 1. Memory without a name, as large as all mailboxes. 2. A page for the door. Mailboxes and
// staging buffers get theirs when they are wanted: most programs want few.
bool make_arena(State& own) {
    const int descriptor = memfd_create("vecmpi", MFD_CLOEXEC);
    if (descriptor < 0) return false;
    if (may_make_files(mailboxes_bytes) && ftruncate(descriptor, mailboxes_bytes) == 0 &&
        give_pages(descriptor, 0, door_bytes))
        own.memory = map_shared(descriptor);
    if (own.memory == nullptr) {
        close(descriptor);
        return false;
    }
    own.file = OwnDescriptor(descriptor);
    own.address = {inode_of(descriptor), getpid(), descriptor};
    open_door(reinterpret_cast<Door*>(own.memory));
    own.free.reserve(mailboxes_per_arena);
    own.free_buffers.reserve(staging_buffers_per_arena);
    return true;
}

// The program may have closed the descriptor.
bool give_own_pages(const State& own, size_t first, size_t bytes) noexcept {
    return own.file.is_there() && give_pages(own.address.descriptor, first, bytes);
}

// Pages for the next few, which are free then.
void make_mailboxes(State& own) noexcept {
    constexpr uint32_t at_once = 16;
    static_assert(mailboxes_per_arena % at_once == 0);
    const uint32_t first = own.mailboxes_with_pages;
    if (first == mailboxes_per_arena ||
        !give_own_pages(own, door_bytes + first * mailbox_bytes, at_once * mailbox_bytes))
        return;
    own.mailboxes_with_pages += at_once;
    for (uint32_t i = at_once; i-- > 0;) own.free.push_back(first + i);
}

bool all_closed(const Retired& retired) noexcept {
    for (const MailboxOfRank& one : retired.all) {
        // Acquire: pairs with retire_mailbox() and take_mailbox() of the mailbox's owner. Another
        // token: the owner has seen all closed.
        if (one.mailbox->token.load(std::memory_order_acquire) != one.token) continue;
        if (one.mailbox->closed.load(std::memory_order_acquire) == 0) return false;
    }
    return true;
}

uint32_t index_of(const State& own, const Mailbox* mailbox) noexcept {
    return static_cast<uint32_t>(
        static_cast<size_t>(reinterpret_cast<const char*>(mailbox) - own.memory - door_bytes) /
        mailbox_bytes);
}

void reclaim(State& own) {
    for (size_t i = 0; i < own.retired.size();) {
        if (!all_closed(own.retired[i])) {
            ++i;
            continue;
        }
        own.free.push_back(index_of(own, own.retired[i].own));
        if (own.retired[i].buffer != no_staging_buffer)
            own.free_buffers.push_back(own.retired[i].buffer);
        own.retired[i] = std::move(own.retired.back());
        own.retired.pop_back();
    }
}

void clear(StagingBuffer* buffer) noexcept {
    for (auto& ring : buffer->signals)
        for (StagingBuffer::SignalLine& line : ring) line.round.store(0, std::memory_order_relaxed);
}

// The next one of this width that was never used; no_staging_buffer where there is none.
uint32_t make_staging_buffer(State& own, RingWidth width) noexcept {
    const bool is_wide = width == RingWidth::wide;
    const uint32_t first = is_wide ? 0 : wide_staging_buffers;
    const uint32_t end = is_wide ? wide_staging_buffers : staging_buffers_per_arena;
    uint32_t& made = own.buffers_with_pages[static_cast<size_t>(width)];
    if (first + made == end ||
        !give_own_pages(own, staging_buffer_offset(first + made), sizeof(StagingBuffer)))
        return no_staging_buffer;
    return first + made++;
}

// Returns no_staging_buffer where none of this width is free.
uint32_t take_free_buffer(State& own, RingWidth width) noexcept {
    const auto found = std::find_if(
        own.free_buffers.begin(), own.free_buffers.end(),
        [=](uint32_t index) noexcept { return width_of_staging_buffer(index) == width; });
    if (found == own.free_buffers.end()) return no_staging_buffer;
    const uint32_t index = *found;
    own.free_buffers.erase(found);
    return index;
}

void clear(Mailbox* mailbox) noexcept {
    const auto clear_lines = [](auto& sets) noexcept {
        for (auto& set : sets)
            for (kernels::Line& line : set)
                std::atomic_ref(line.flag).store(0, std::memory_order_relaxed);
    };
    for (auto& finished : mailbox->finished) finished.store(0, std::memory_order_relaxed);
    mailbox->closed.store(0, std::memory_order_relaxed);
    for (TurnBoard& board : mailbox->turns) board.clear();
    clear_lines(mailbox->butterfly);
    clear_lines(mailbox->one_way);
}

}  // namespace

bool own_arena(ArenaAddress* address) noexcept {
    State& own = state();
    const std::lock_guard lock(own.mutex);
    try {
        if (!std::exchange(own.tried, true)) make_arena(own);
    } catch (const std::bad_alloc&) {
        own.memory = nullptr;
    }
    *address = own.address;
    return own.memory != nullptr;
}

Mailbox* take_mailbox(uint32_t* index, uint64_t* token) noexcept {
    State& own = state();
    const std::lock_guard lock(own.mutex);
    if (own.memory == nullptr) return nullptr;
    try {
        if (own.free.empty()) reclaim(own);
    } catch (const std::bad_alloc&) {
    }
    if (own.free.empty()) make_mailboxes(own);
    *token = own.free.empty() ? 0 : random_token();
    if (*token == 0) return nullptr;  // so peers look nowhere
    *index = own.free.back();
    own.free.pop_back();
    Mailbox* const mailbox = mailbox_at(own.memory, *index);
    clear(mailbox);
    mailbox->token.store(*token, std::memory_order_release);
    return mailbox;
}

void return_mailbox(Mailbox* own_mailbox) noexcept {
    own_mailbox->closed.store(1, std::memory_order_release);
    State& own = state();
    const std::lock_guard lock(own.mutex);
    own.free.push_back(index_of(own, own_mailbox));  // has room
}

uint32_t take_staging_buffer(RingWidth wanted) noexcept {
    State& own = state();
    const std::lock_guard lock(own.mutex);
    if (own.memory == nullptr) return no_staging_buffer;
    reclaim(own);
    const RingWidth other = wanted == RingWidth::wide ? RingWidth::narrow : RingWidth::wide;
    uint32_t index = no_staging_buffer;
    for (const RingWidth width : {wanted, other}) {
        index = take_free_buffer(own, width);
        if (index == no_staging_buffer) index = make_staging_buffer(own, width);
        if (index != no_staging_buffer) break;
    }
    if (index != no_staging_buffer) clear(staging_buffer_at(own.memory, index));
    return index;
}

bool give_large_slots(uint32_t index) noexcept {
    State& own = state();
    const std::lock_guard lock(own.mutex);
    bool& has_them = own.has_large_slots[index];
    has_them = has_them || give_own_pages(own, staging_buffer_offset(index),
                                          staging_buffer_bytes(width_of_staging_buffer(index)));
    return has_them;
}

void return_staging_buffer(uint32_t index) noexcept {
    State& own = state();
    const std::lock_guard lock(own.mutex);
    own.free_buffers.push_back(index);
}

namespace {
// Null where the mailbox is in none that is mapped.
char* arena_of(const Mailbox* mailbox) noexcept {
    State& own = state();
    const std::lock_guard lock(own.mutex);
    const auto holds_mailbox = [=](const char* memory) noexcept {
        const auto* const at = reinterpret_cast<const char*>(mailbox);
        return memory != nullptr && at >= memory && at < memory + mailboxes_bytes;
    };
    if (holds_mailbox(own.memory)) return own.memory;
    for (const Mapped& known : own.mapped)
        if (holds_mailbox(known.memory)) return known.memory;
    return nullptr;
}
}  // namespace

StagingBuffer* staging_buffer_of(const Mailbox* mailbox, uint32_t index) noexcept {
    char* const arena = index < staging_buffers_per_arena ? arena_of(mailbox) : nullptr;
    return arena ? staging_buffer_at(arena, index) : nullptr;
}

Door* door_of(const Mailbox* mailbox) noexcept {
    return reinterpret_cast<Door*>(arena_of(mailbox));
}

void retire_mailbox(Mailbox* own_mailbox, uint32_t buffer,
                    std::vector<MailboxOfRank> all) noexcept {
    own_mailbox->closed.store(1, std::memory_order_release);
    State& own = state();
    const std::lock_guard lock(own.mutex);
    try {
        own.retired.push_back({own_mailbox, buffer, std::move(all)});
    } catch (const std::bad_alloc&) {
    }
}

Mailbox* map_mailbox(const ArenaAddress& address, uint32_t index, uint64_t token) noexcept {
    if (index >= mailboxes_per_arena) return nullptr;
    State& own = state();
    const std::lock_guard lock(own.mutex);
    const auto checked = [&](char* memory) noexcept -> Mailbox* {
        Mailbox* const mailbox = mailbox_at(memory, index);
        return mailbox->token.load(std::memory_order_acquire) == token ? mailbox : nullptr;
    };
    for (const Mapped& known : own.mapped)
        if (known.address.process == address.process && known.address.inode == address.inode)
            return checked(known.memory);
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", address.process, address.descriptor);
    const int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return nullptr;
    char* const memory = inode_of(descriptor) == address.inode ? map_shared(descriptor) : nullptr;
    close(descriptor);
    if (memory == nullptr) return nullptr;
    test_bell(*reinterpret_cast<Door*>(memory));
    try {
        own.mapped.push_back({address, memory});
    } catch (const std::bad_alloc&) {
        munmap(memory, arena_bytes);
        return nullptr;
    }
    return checked(memory);
}

void release_arenas() noexcept {
    State& own = state();
    const std::lock_guard lock(own.mutex);
    for (const Mapped& one : own.mapped) munmap(one.memory, arena_bytes);
    own.mapped.clear();
    own.retired.clear();
    own.free.clear();
    own.free_buffers.clear();
    own.mailboxes_with_pages = 0;
    std::fill(std::begin(own.buffers_with_pages), std::end(own.buffers_with_pages), 0);
    std::fill(std::begin(own.has_large_slots), std::end(own.has_large_slots), false);
    if (own.memory != nullptr) {
        close_door();
        munmap(own.memory, arena_bytes);
        own.file.close();
    }
    own.memory = nullptr;
    own.tried = false;
}

}  // namespace vecmpi::pipeline::node
