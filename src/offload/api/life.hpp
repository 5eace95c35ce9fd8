// SPDX-License-Identifier: BSD-3-Clause
// Start and stop of the engine, and what the ranks have agreed on.
#pragma once

#include <mpi.h>

#include <string>

#include "base/api.hpp"

namespace vecmpi::offload {

// What the ranks of MPI_COMM_WORLD have found out together in MPI_Init.
struct Agreement {
    bool valid = false;             // false before MPI_Init and after MPI_Finalize
    bool twin_collectives = false;  // some node is oversubscribed and its library spins
    bool one_node = true;
    bool one_rank = false;
    bool alone_on_nodes = false;  // each rank on its own, as far as the launcher says
    bool serves_jobs = false;     // jobs_are_served()
    bool profile = false;         // all ranks have the same collective part of a profile, not empty
};
const Agreement& agreement() noexcept;

// In MPI_Init: MPI_Finalize will call `work` before anything else ends. The program's own callbacks
// on MPI_COMM_SELF come before it: they may wait for ranks that are not in MPI_Finalize yet.
void call_last_in_finalize(MPI_Comm_delete_attr_function* work) noexcept;

// The thread level to ask the library for where the program asks for app_level. An offload thread
// needs a higher one.
int level_to_request(int app_level) noexcept;
// How the library should rest in its own waits: as blocked program threads do, but without sleeps,
// since a poll cannot tell a wait from a test.
WaitPolicy library_wait_policy() noexcept;
// More threads of ranks want to run on this node than there are CPUs, as far as this rank knows.
bool node_is_crowded() noexcept;
bool blocked_calls_may_sleep() noexcept;  // until the next message wakes them
// True where all ranks share one node and its CPUs are too few: each handshake of a rendezvous
// waits for a rank that has no CPU.
bool handshakes_are_slow() noexcept;
// How the library's own waits go.
struct LibraryWaits {
    bool rest = false;        // they follow library_wait_policy()
    bool serve_jobs = false;  // they look after jobs
};

// After the real MPI_Init_thread. Collective over MPI_COMM_WORLD. session_came_first: threads may
// be inside the library. *app_provided: what MPI_Init_thread returns to the program.
void start_engine(int app_level, int lib_provided, const LibraryWaits& library_waits,
                  bool session_came_first, int* app_provided) noexcept;
// Before the real MPI_Finalize: issues what is queued, joins the thread. The engine still serves
// calls that come back from MPI_Finalize, each on its caller's thread: other ranks may still make
// the same calls by the engine.
void quiesce_engine() noexcept;
// After the real MPI_Finalize.
void stop_engine() noexcept;
bool engine_runs() noexcept;  // false before start, after stop, and in a forked child
bool engine_has_thread() noexcept;
int app_thread_level() noexcept;  // what MPI_Query_thread tells the program
std::string engine_reason();      // why the thread is on or off, one line

}  // namespace vecmpi::offload
