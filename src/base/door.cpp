// SPDX-License-Identifier: BSD-3-Clause
// A process that waits for memory shared with others of its node sleeps at its door until one of
// them rings. That takes one descriptor, however many the others are.
#include <mutex>

#include "base/api.hpp"

namespace vecmpi::base {
namespace {

// This process's. A forked child has the bell, but not the memory.
struct OwnDoor {
    std::mutex mutex;  // of all but has_door()
    std::atomic<Door*> door{nullptr};
    Bell bell;
    uint32_t sleepers = 0;  // threads
};
constinit OwnDoor own;

}  // namespace

bool open_door(Door* door) noexcept {
    const std::lock_guard lock(own.mutex);
    if (!own.bell.make()) return false;
    own.sleepers = 0;
    door->asleep.store(0, std::memory_order_relaxed);
    door->is_deaf.store(0, std::memory_order_relaxed);
    door->name.store(own.bell.name(), std::memory_order_release);
    own.door.store(door, std::memory_order_release);
    return true;
}

void close_door() noexcept {
    const std::lock_guard lock(own.mutex);
    if (own.door.exchange(nullptr, std::memory_order_relaxed) != nullptr) own.bell.close();
}

bool has_door() noexcept {
    const Door* const door = own.door.load(std::memory_order_acquire);
    return door != nullptr && door->is_deaf.load(std::memory_order_relaxed) == 0;
}

int lie_down_at_door() noexcept {
    const std::lock_guard lock(own.mutex);
    Door* const door = own.door.load(std::memory_order_relaxed);
    if (door == nullptr || door->is_deaf.load(std::memory_order_relaxed) != 0) return -1;
    if (!own.bell.is_there()) {
        door->is_deaf.store(1, std::memory_order_relaxed);
        return -1;
    }
    // Threads that were rung for are awake, or about to be.
    if (own.sleepers++ == 0 || door->asleep.load(std::memory_order_relaxed) == 0)
        own.bell.forget_rings();
    // Stored before our next look, for those who write after it. Such a writer may still miss this
    // store: then the sleep ends by itself.
    door->asleep.store(1, std::memory_order_seq_cst);
    return own.bell.descriptor();
}

void get_up_from_door() noexcept {
    const std::lock_guard lock(own.mutex);
    Door* const door = own.door.load(std::memory_order_relaxed);
    if (door == nullptr || own.sleepers == 0) return;
    if (--own.sleepers == 0) door->asleep.store(0, std::memory_order_relaxed);
}

void test_bell(Door& peer) noexcept {
    const std::lock_guard lock(own.mutex);
    if (!own.bell.ring(peer.name.load(std::memory_order_acquire)))
        peer.is_deaf.store(1, std::memory_order_relaxed);
}

// Rings once for each time that somebody lay down.
void ring_at(Door& door) noexcept {
    if (door.asleep.exchange(0, std::memory_order_relaxed) != 0) test_bell(door);
}

}  // namespace vecmpi::base
