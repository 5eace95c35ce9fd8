// SPDX-License-Identifier: BSD-3-Clause
// Arenas: made, mapped, divided into boxes.
#include "arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

namespace vecmpi::pipeline::node {
namespace {

struct Retired {
    Box* own;
    uint32_t bay;
    std::vector<BoxOfRank> all;
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
    std::vector<uint32_t> free;       // boxes
    std::vector<uint32_t> free_bays;  // with room for all
    uint32_t bays_with_pages = 0;     // the first ones
    std::vector<Retired> retired;
    std::vector<Mapped> mapped;
};
State& state() noexcept {
    static auto* const made = new State;
    return *made;
}

Box* box_at(char* arena, uint32_t index) noexcept {
    return reinterpret_cast<Box*>(arena + door_bytes + size_t{index} * box_bytes);
}

constexpr size_t bay_offset(uint32_t index) noexcept { return boxes_bytes + index * bay_bytes; }

Bay* bay_at(char* arena, uint32_t index) noexcept {
    return reinterpret_cast<Bay*>(arena + bay_offset(index));
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
        fstat(descriptor, &status) == 0 && static_cast<size_t>(status.st_size) >= boxes_bytes;
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
    return posix_fallocate(descriptor, static_cast<off_t>(first), static_cast<off_t>(bytes)) == 0;
}

// 1. Memory without a name. 2. Pages for the boxes. 3. All boxes are free.
bool make_arena(State& own) {
    const int descriptor = memfd_create("vecmpi", MFD_CLOEXEC);
    if (descriptor < 0) return false;
    if (give_pages(descriptor, 0, boxes_bytes)) own.memory = map_shared(descriptor);
    if (own.memory == nullptr) {
        close(descriptor);
        return false;
    }
    own.file = OwnDescriptor(descriptor);
    own.address = {inode_of(descriptor), getpid(), descriptor};
    open_door(reinterpret_cast<Door*>(own.memory));
    own.free_bays.reserve(bays_per_arena);
    for (uint32_t index = boxes_per_arena; index-- > 0;) own.free.push_back(index);
    return true;
}

bool all_closed(const Retired& retired) noexcept {
    for (const BoxOfRank& one : retired.all) {
        // Acquire: pairs with retire_box() and take_box() of the box's owner. Another token: the
        // owner has seen all closed.
        if (one.box->token.load(std::memory_order_acquire) != one.token) continue;
        if (one.box->closed.load(std::memory_order_acquire) == 0) return false;
    }
    return true;
}

uint32_t index_of(const State& own, const Box* box) noexcept {
    return static_cast<uint32_t>(
        static_cast<size_t>(reinterpret_cast<const char*>(box) - own.memory - door_bytes) /
        box_bytes);
}

void reclaim(State& own) {
    for (size_t i = 0; i < own.retired.size();) {
        if (!all_closed(own.retired[i])) {
            ++i;
            continue;
        }
        own.free.push_back(index_of(own, own.retired[i].own));
        if (own.retired[i].bay != no_bay) own.free_bays.push_back(own.retired[i].bay);
        own.retired[i] = std::move(own.retired.back());
        own.retired.pop_back();
    }
}

void clear(Bay* bay) noexcept {
    for (auto& lane : bay->signals)
        for (Bay::SignalLine& line : lane) line.round.store(0, std::memory_order_relaxed);
}

// The next bay of the arena that was never used. The program may have closed the descriptor.
bool make_bay(State& own) {
    if (own.bays_with_pages == bays_per_arena) return false;
    if (!own.file.is_there()) return false;
    if (!give_pages(own.address.descriptor, bay_offset(own.bays_with_pages), bay_bytes))
        return false;
    own.free_bays.push_back(own.bays_with_pages++);
    return true;
}

void clear(Box* box) noexcept {
    const auto clear_lines = [](auto& sets) noexcept {
        for (auto& set : sets)
            for (kernels::Line& line : set)
                std::atomic_ref(line.flag).store(0, std::memory_order_relaxed);
    };
    for (auto& finished : box->finished) finished.store(0, std::memory_order_relaxed);
    box->closed.store(0, std::memory_order_relaxed);
    clear_lines(box->butterfly);
    clear_lines(box->one_way);
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

Box* take_box(uint32_t* index, uint64_t* token) noexcept {
    State& own = state();
    const std::lock_guard lock(own.mutex);
    if (own.memory == nullptr) return nullptr;
    try {
        if (own.free.empty()) reclaim(own);
    } catch (const std::bad_alloc&) {
    }
    *token = random_token();
    if (own.free.empty() || *token == 0) return nullptr;
    *index = own.free.back();
    own.free.pop_back();
    Box* const box = box_at(own.memory, *index);
    clear(box);
    box->token.store(*token, std::memory_order_release);
    return box;
}

void return_box(Box* own_box) noexcept {
    own_box->closed.store(1, std::memory_order_release);
    State& own = state();
    const std::lock_guard lock(own.mutex);
    try {
        own.free.push_back(index_of(own, own_box));
    } catch (const std::bad_alloc&) {
        // One box less.
    }
}

uint32_t take_bay() noexcept {
    State& own = state();
    const std::lock_guard lock(own.mutex);
    if (own.memory == nullptr) return no_bay;
    if (own.free_bays.empty()) reclaim(own);
    if (own.free_bays.empty() && !make_bay(own)) return no_bay;
    const uint32_t index = own.free_bays.back();
    own.free_bays.pop_back();
    clear(bay_at(own.memory, index));
    return index;
}

void return_bay(uint32_t index) noexcept {
    State& own = state();
    const std::lock_guard lock(own.mutex);
    own.free_bays.push_back(index);
}

namespace {
// Null where the box is in none that is mapped.
char* arena_of(const Box* box) noexcept {
    State& own = state();
    const std::lock_guard lock(own.mutex);
    const auto holds_box = [=](const char* memory) noexcept {
        const auto* const at = reinterpret_cast<const char*>(box);
        return memory != nullptr && at >= memory && at < memory + boxes_bytes;
    };
    if (holds_box(own.memory)) return own.memory;
    for (const Mapped& known : own.mapped)
        if (holds_box(known.memory)) return known.memory;
    return nullptr;
}
}  // namespace

Bay* bay_beside(const Box* box, uint32_t index) noexcept {
    char* const arena = index < bays_per_arena ? arena_of(box) : nullptr;
    return arena ? bay_at(arena, index) : nullptr;
}

Door* door_beside(const Box* box) noexcept { return reinterpret_cast<Door*>(arena_of(box)); }

void retire_box(Box* own_box, uint32_t bay, std::vector<BoxOfRank> all) noexcept {
    own_box->closed.store(1, std::memory_order_release);
    State& own = state();
    const std::lock_guard lock(own.mutex);
    try {
        own.retired.push_back({own_box, bay, std::move(all)});
    } catch (const std::bad_alloc&) {
    }
}

Box* map_box(const ArenaAddress& address, uint32_t index, uint64_t token) noexcept {
    if (index >= boxes_per_arena) return nullptr;
    State& own = state();
    const std::lock_guard lock(own.mutex);
    const auto checked = [&](char* memory) noexcept -> Box* {
        Box* const box = box_at(memory, index);
        return box->token.load(std::memory_order_acquire) == token ? box : nullptr;
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
    own.free_bays.clear();
    own.bays_with_pages = 0;
    if (own.memory != nullptr) {
        close_door();
        munmap(own.memory, arena_bytes);
        own.file.close();
    }
    own.memory = nullptr;
    own.tried = false;
}

}  // namespace vecmpi::pipeline::node
