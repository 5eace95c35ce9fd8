// SPDX-License-Identifier: BSD-3-Clause
// The library's polls, and how it rests in its own waits.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/api.hpp"

namespace vecmpi::library {

// What the library's polls on this thread have moved so far; added to by each.
extern thread_local constinit uint64_t library_events __attribute__((tls_model("initial-exec")));

// Jobs that are not done. Relaxed: a look more or less does no harm.
extern std::atomic<uint32_t> jobs_under_way;
extern std::atomic<uint32_t> jobs_on_memory;  // those that wait for what other processes write

// After a poll that the MPI library made on this thread: when may it advance the jobs? Never
// where the engine's loop does, or its thread; at once where the library holds no lock.
enum class JobLook { none, at_once, after_unlock };

// What src/offload answers to a poll.
struct PollAnswers {
    JobLook (*look)() noexcept;       // after a poll while there are jobs
    void (*advance_jobs)() noexcept;  // in a wait that holds no lock of the library's
    bool (*loop_rests)() noexcept;    // the engine's loop called the library on this thread
};
// Until then there are no jobs, and no loop. answers: for ever.
void answer_polls(const PollAnswers& answers) noexcept;

// From now on the library's progress polls rest on the ladder when they find nothing. Before the
// real MPI_Init, which waits too.
void rest_in_library(const WaitPolicy& policy) noexcept;

// While on, the locks of who polls come through here: from before the real MPI_Init until the tests
// whose answer is library_shows_polls(). Afterwards only its unlocks do, from the first on after
// which something is due.
void watch_locks_of_library(bool on) noexcept;

// True once a poll came through here: only libraries that call UCX (MPICH's ch4:ucx) do.
bool library_polls_seen() noexcept;

// Whether code at this address is the MPI library's own; false as long as it has not polled.
// Its own calls of nonblocking collectives (ROMIO's) come whenever this rank looks at some request,
// in another order among the rest on each rank.
bool is_mpi_library(uintptr_t address) noexcept;

// Before the tests that the next question is about: what polled until now may have held other
// locks.
void forget_global_lock() noexcept;
// True where a look at the jobs follows the polls of the MPI library itself: those of a library
// below it (libfabric) come with locks held that nobody knows. locks: it polls with a lock held,
// and must have shown that we see it taken and given back.
bool library_shows_polls(bool locks) noexcept;

// The library polls at its own speed again.
void stop_resting_in_library() noexcept;

}  // namespace vecmpi::library
