// SPDX-License-Identifier: BSD-3-Clause
// Doors: sleeping until another process of the node has written something.
#pragma once

#include <atomic>
#include <cstdint>

namespace vecmpi::base {

// In memory that the processes share: each has one, and opens it itself.
struct Door {
    std::atomic<uint32_t> asleep;   // a thread of the process sleeps, or is about to
    std::atomic<uint32_t> is_deaf;  // somebody cannot ring here: nobody sleeps
    std::atomic<uint64_t> name;     // of the bell; 0: none
};
// This process's door. False where the system refuses a bell. One at a time.
bool open_door(Door* door) noexcept;
void close_door() noexcept;
bool has_door() noexcept;  // and may sleep at it
// After this a thread looks once more, and may then sleep until the descriptor is readable. -1: it
// must not sleep. A ring is missed once in a great while, so a sleep needs a limit.
int lie_down_at_door() noexcept;
void get_up_from_door() noexcept;
// Can this door be rung from here? Each peer that has a door asks, before anybody sleeps.
void test_bell(Door& peer) noexcept;
// After something was written that the door's process may wait for. Where nobody sleeps it costs a
// load.
void ring_at(Door& door) noexcept;
inline void ring_if_asleep(Door& door) noexcept {
    if (door.asleep.load(std::memory_order_relaxed) != 0) [[unlikely]]
        ring_at(door);
}

}  // namespace vecmpi::base
