// SPDX-License-Identifier: BSD-3-Clause
// What MPI_Init found out about this process and its library. Nothing changes while the engine
// runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/api.hpp"

namespace vecmpi::offload {

struct EngineFacts {
    WaitPolicy wait;                         // of blocked program threads
    uint32_t callers_with_cpu = UINT32_MAX;  // more blocked threads than these yield soon
    bool yields_at_once = false;             // oversubscribed: failing Tests give the CPU away
    // Operations may be queued: for the offload thread, or at MPI_THREAD_MULTIPLE for the blocked
    // thread that owns the engine. There threads block in the engine, which waits better.
    bool queues = false;
    bool many_callers = false;        // several threads may wait at once, ours among them
    bool library_may_wait = false;    // its own waits use our policy, or may spin
    bool callers_serve_jobs = false;  // in waits of the library too, by its polls
    bool library_locks = false;       // it is at MPI_THREAD_MULTIPLE: it polls with its lock held
    // MPICH 5 and Intel MPI hold their lock while they run an operator of the program; MPICH 4 does
    // not. The operator may wait for a lock of the program, whose holder waits for the library's
    // lock. So it must not run on the offload thread.
    bool operators_lock_library = false;
    // A message of a predefined type that the caller issues itself while nothing is queued. The
    // library copies so few bytes at once (8 of them in 40 ns; a trip through the queue takes 100
    // to 250), so there is nothing that the thread could carry on. Between hosts a copy ends in a
    // system call, of which the thread relieves the caller.
    size_t most_bytes_of_caller = 1024;
    int tag_upper_bound = 32767;

    // As well as our loop would.
    bool library_waits_as_well() const noexcept {
        return library_may_wait && wait.max_sleep_us == 0;
    }
};

}  // namespace vecmpi::offload
