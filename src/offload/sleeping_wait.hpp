// SPDX-License-Identifier: BSD-3-Clause
// A wait of the engine's that sleeps now and then. Does not decide when: Engine::rest_or_sleep().
#pragma once

#include <utility>

#include "library/api.hpp"
#include "offload/api/thread_state.hpp"

namespace vecmpi::offload {

// What ends a wait: a message, or what another rank of the node writes to shared memory.
enum class WaitsFor : uint8_t { messages, memory };

// Between two sleeps its looks arm what they find empty, and it lies at the door where it waits for
// memory. What its last look armed is forgotten with it.
class SleepingWait {
  public:
    SleepingWait() = default;
    ~SleepingWait() {
        get_up();
        library::forget_armed();
    }
    SleepingWait(const SleepingWait&) = delete;
    SleepingWait& operator=(const SleepingWait&) = delete;
    // The next look is the last one before a sleep.
    void lie_down(bool at_door) noexcept;
    // False where nothing was armed, or the door is shut: it looks again at once.
    bool sleep() noexcept;
    bool is_refused_often() const noexcept { return refusals_ % library::most_refusals == 0; }
    // Has the library moved something since the last call? What wakes nobody must be looked for.
    bool library_moved() noexcept {
        return std::exchange(events_, library::library_events) != library::library_events;
    }

  private:
    void get_up() noexcept;

    const Within wait_{Inside::wait};
    int door_ = -1;
    uint32_t refusals_ = 0;  // in a row
    uint64_t events_ = library::library_events;
};

}  // namespace vecmpi::offload
