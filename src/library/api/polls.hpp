// SPDX-License-Identifier: BSD-3-Clause
// The library's polls, and how it rests in its own waits.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/api.hpp"

namespace vecmpi::library {

// How many events the library's polls on this thread have moved so far.
extern thread_local constinit uint64_t library_events __attribute__((tls_model("initial-exec")));

// Jobs that are not done. Relaxed: a look more or less does no harm.
extern std::atomic<uint32_t> jobs_under_way;
extern std::atomic<uint32_t> jobs_on_memory;  // those that wait for what other processes write

// When may a poll that the MPI library made on this thread advance the jobs? Never, where the
// engine's loop or its thread does; at once, where the library holds no lock.
enum class JobLook { none, at_once, after_unlock };

// What src/offload answers to a poll.
struct PollAnswers {
    JobLook (*look)() noexcept;       // after a poll while there are jobs
    void (*advance_jobs)() noexcept;  // in a wait that holds no lock of the library's
    bool (*loop_rests)() noexcept;    // the engine's loop called the library on this thread
};
// Until this there are no jobs, and no loop. answers must stay valid.
void answer_polls(const PollAnswers& answers) noexcept;

// From now on the library's polls rest on the ladder when they find nothing. Before the real
// MPI_Init, which waits too.
void rest_in_library(const WaitPolicy& policy) noexcept;

// While on, the locks of the library come through here: from before the real MPI_Init to the tests
// that library_shows_polls() is about. Afterwards only its unlocks do, once something has become
// due.
void watch_locks_of_library(bool on) noexcept;

// Has a poll come through here? Only libraries that call UCX make any (MPICH's ch4:ucx).
bool library_polls_seen() noexcept;

// Is code at this address the MPI library's own? False as long as it has not polled. Its own calls
// of nonblocking collectives (ROMIO's) come whenever this rank looks at some request: on each rank
// at another place among the program's.
bool is_mpi_library(uintptr_t address) noexcept;
// Can that be told?
bool library_shows_its_calls() noexcept;

// Before the tests for library_shows_polls(): earlier polls may have held other locks.
void forget_global_lock() noexcept;
// Does a look at the jobs follow the polls of the MPI library itself? Polls of a library below it
// (libfabric) come with locks that nobody knows. locks: it polls with a lock held, and must have
// shown that we see it taken and given back.
bool library_shows_polls(bool locks) noexcept;

// The library polls at its own speed again.
void stop_resting_in_library() noexcept;

}  // namespace vecmpi::library
