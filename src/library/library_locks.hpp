// SPDX-License-Identifier: BSD-3-Clause
// The MPI library's own locks, and what a poll leaves to be done once they are given up. Inside
// src/library only.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace vecmpi::library {

// At MPI_THREAD_MULTIPLE the library polls with its lock held, and gives it up for a moment after
// each poll in vain. A thread that rested in the poll would keep the others out. It would hand the
// CPU to one that finds the lock taken, and threads would starve for seconds. So a rest becomes due
// in the poll, and is taken once the lock is free.
//
// A look at the jobs calls the library, which takes its global lock. So that lock must have been
// given up. An inner lock may be given up before it, and ROMIO holds one of its own all the while.
struct AtUnlock {
    enum Due : unsigned { nothing = 0, rest = 1, jobs = 2, sleep = 4 };
    unsigned due = nothing;
    int locks_held = 0;   // of the library's, by this thread
    bool polled = false;  // since a lock was last given up, while all are watched
};
extern thread_local constinit AtUnlock at_unlock __attribute__((tls_model("initial-exec")));

// The outermost lock that a test of a request gives up after a poll; null: none was seen. Not null:
// the library polls with its lock held.
extern std::atomic<pthread_mutex_t*> global_lock;

// Which calls of pthread_mutex_* by the library come here. In MPI_Init all of them, to find the
// global lock. Later none, until something first becomes due: they cost a program at
// MPI_THREAD_MULTIPLE some ns a call.
enum class Watched : uint8_t { none, unlocks, all };
void find_library_locks() noexcept;  // in MPI_Init, before the first watch
void watch_library_locks(Watched what) noexcept;
extern std::atomic<bool> unlocks_come_here, all_locks_come_here;

inline void become_due(AtUnlock::Due what) noexcept {
    if (!unlocks_come_here.load(std::memory_order_relaxed)) [[unlikely]]
        watch_library_locks(Watched::unlocks);
    at_unlock.due |= what;
}
// After an unlock while something is due. In progress.cpp.
void do_what_is_due(const pthread_mutex_t* given_up) noexcept;

}  // namespace vecmpi::library
