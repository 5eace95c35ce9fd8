// SPDX-License-Identifier: BSD-3-Clause
// What a thread's polls have armed. Inside src/library only.
#pragma once

#include <poll.h>

#include "library/api.hpp"

namespace vecmpi::library {

// Of this thread.
struct Arming {
    static constexpr unsigned most_workers = 8;
    bool wanted = false;    // polls in vain arm
    bool complete = false;  // a worker came by again, in vain: so all that are polled are armed
    unsigned workers = 0;
    uint32_t refusals = 0;  // of the library's own waits
    const void* worker[most_workers] = {};
    pollfd found[most_workers + 2] = {};  // behind them: the thread's own bell, and a door
};
extern thread_local constinit Arming arming __attribute__((tls_model("initial-exec")));

// After a poll of this worker that found nothing. False where it cannot be armed now.
bool arm(void* worker) noexcept;

// A poll of this thread moved something: other threads look what it was.
inline void note_moved() noexcept {
    if (arming.wanted || is_announced) [[unlikely]]
        forget_armed();
    wake_sleepers();
}

}  // namespace vecmpi::library
