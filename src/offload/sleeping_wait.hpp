// SPDX-License-Identifier: BSD-3-Clause
// A wait of the engine's that sleeps now and then. Does not decide when: Engine::rest_or_sleep().
#pragma once

#include <utility>

#include "library/api.hpp"
#include "offload/api/thread_state.hpp"

namespace vecmpi::offload {

// What ends a wait: a message, or a write of another rank of the node to shared memory.
enum class WaitsFor : uint8_t { messages, memory };

// Before a sleep it looks once more, and that look arms what it finds empty. Where it waits for
// memory, the door of this process (base/door.cpp) is armed too.
class SleepingWait {
  public:
    SleepingWait() = default;
    ~SleepingWait() {
        leave_door();
        library::forget_armed();
    }
    SleepingWait(const SleepingWait&) = delete;
    SleepingWait& operator=(const SleepingWait&) = delete;
    // The next look is the last one before a sleep.
    void prepare(bool at_door) noexcept;
    // False where it did not sleep: the next look comes at once.
    bool sleep() noexcept;
    bool is_refused_often() const noexcept { return refusals_ % library::most_refusals == 0; }
    // The library has moved something since the last call.
    bool library_moved() noexcept {
        return std::exchange(events_, library::library_events) != library::library_events;
    }

  private:
    void leave_door() noexcept;

    const Within wait_{Inside::wait};
    int door_ = -1;
    uint32_t refusals_ = 0;  // in a row
    uint64_t events_ = library::library_events;
};

}  // namespace vecmpi::offload
