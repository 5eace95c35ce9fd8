// SPDX-License-Identifier: BSD-3-Clause
// Waiting on something other than a request of the program.
#pragma once

#include <mpi.h>

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

}  // namespace vecmpi::offload
