// SPDX-License-Identifier: BSD-3-Clause
// Waiting on something other than a request of the program.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

namespace vecmpi::offload {

// A request of the library that is never complete: a test of it makes the library poll, and a
// Testall with it completes no other request. Made by the first call, inside a DirectCall or as the
// engine's owner. MPI_REQUEST_NULL where the library refuses one.
MPI_Request pending_for_ever() noexcept;
void end_pending_for_ever() noexcept;  // before MPI_Finalize

// Calls look(context), which may call the library, until it returns true. Rests on the ladder
// between looks.
void wait_until(bool (*look)(void* context), void* context) noexcept;

// Returns once look() is true. look() is cheap and calls no MPI: it reads memory that other
// processes write. At first it is all that happens; then the thread waits on the ladder, and the
// library and jobs go on. After the first pending_for_ever().
extern uint32_t looks_by_itself;  // at least 1
void wait_for_memory_on_ladder(bool (*look)(const void* context), const void* context) noexcept;
template <class Look>
void wait_for_memory(const Look& look) noexcept {
    for (uint32_t looks = looks_by_itself; looks != 0; --looks)
        if (look()) return;
    wait_for_memory_on_ladder(
        [](const void* context) { return (*static_cast<const Look*>(context))(); }, &look);
}
// Lets the library poll once, where no thread of ours does. For calls that often return without
// asking the library.
void make_progress() noexcept;

// After an Iprobe that found nothing: on an oversubscribed node the sender needs this CPU.
void rest_after_failing_look() noexcept;

// ---- looks after collectives that do not poll ---------------------------------------------------

// MPICH's probes, MPI_Parrived and MPI_Win_test look before they poll. Its own collectives poll, so
// that the first look after one finds what was sent before it. Collectives through memory do not
// poll; so after one of them who looks in vain, and polls, looks again. Need::later_looks.

// Collectives through memory that have returned, on any thread, and how many of them a poll has
// followed. Two threads may count one return for both: both have returned then.
struct PollsOwed {
    std::atomic<uint64_t> returned{0};      // released, so that a poll sees what came before
    std::atomic<uint64_t> polled_after{0};  // released by who has polled
};
extern PollsOwed polls_owed;
inline void note_return_from_memory() noexcept {
    polls_owed.returned.store(polls_owed.returned.load(std::memory_order_relaxed) + 1,
                              std::memory_order_release);
}
void forget_returns_from_memory() noexcept;

int look_again(uint64_t returned, const int* found, int (*look)(const void* context),
               const void* context) noexcept;

// look() -> error: calls the library, which sets *found. As MPI_Iprobe may be called.
template <class Look>
int look_once(const int* found, const Look& look) noexcept {
    // Before the look: another thread's poll may come after it.
    const uint64_t returned = polls_owed.returned.load(std::memory_order_acquire);
    const bool owed = polls_owed.polled_after.load(std::memory_order_acquire) != returned;
    const int error = look();
    if (!owed || error != MPI_SUCCESS || *found != 0) [[likely]]
        return error;
    return look_again(
        returned, found, [](const void* context) { return (*static_cast<const Look*>(context))(); },
        &look);
}

}  // namespace vecmpi::offload
