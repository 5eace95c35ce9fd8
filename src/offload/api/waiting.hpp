// SPDX-License-Identifier: BSD-3-Clause
// Waiting on something other than a request of the program.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace vecmpi::offload {

// A request of the library that is never complete, made by the first call, inside a DirectCall or
// as the engine's owner: who tests it makes the library poll. Beside it, Testall looks at requests
// and takes none. MPI_REQUEST_NULL where the library refuses one.
MPI_Request pending_for_ever() noexcept;
void end_pending_for_ever() noexcept;  // before MPI_Finalize

// Calls look(context), which may call the library, until it returns true, resting on the ladder
// between.
void wait_until(bool (*look)(void* context), void* context) noexcept;

// Returns once look() says so, which calls no MPI and is cheap: others change memory that this
// process shares with them. After the first pending_for_ever(), as the next. First by itself, then
// on the ladder; the library and jobs go on then.
extern uint32_t looks_by_itself;  // at least 1
void wait_for_memory_on_ladder(bool (*look)(const void* context), const void* context) noexcept;
template <class Look>
void wait_for_memory(const Look& look) noexcept {
    for (uint32_t looks = looks_by_itself; looks != 0; --looks)
        if (look()) return;
    wait_for_memory_on_ladder(
        [](const void* context) { return (*static_cast<const Look*>(context))(); }, &look);
}
// Lets the library look once at what is under way, where no thread of ours does: for calls that
// often return without asking it.
void make_progress() noexcept;

// After a look of the program's own loop (Iprobe) that found nothing: on an oversubscribed node
// whoever must send has no CPU while the program asks again.
void rest_after_failing_look() noexcept;

}  // namespace vecmpi::offload
