// SPDX-License-Identifier: BSD-3-Clause
// What is known of communicators.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace vecmpi::offload {

struct CommTraits {
    int size = 0;  // of the remote group on an inter-communicator
    bool inter = false;
    bool neighbours = false;  // it has a topology
    bool world_only = true;   // every process belongs to this process's MPI_COMM_WORLD
    enum class Handler : uint8_t { fatal, returns, user } handler = Handler::fatal;
};
// Cached. Of a handle that is no communicator (any more) the size is 0.
CommTraits comm_traits(MPI_Comm comm) noexcept;
// Collective over comm, blocking, by the library: can all ranks, and did all give the same number?
bool all_can(MPI_Comm comm, bool can, uint64_t same_number = 0) noexcept;
// A session and its requests may outlive MPI_Finalize, after which no virtual request is known. No
// call tells whether a communicator is of a session. So once one was opened, operations are not
// queued. Of this rank only; all_can() asks all of them.
bool session_was_opened() noexcept;
// Before a communicator is freed or its error handler changes.
void forget_comm_traits() noexcept;
// The communicator's error handler may be another one now.
void note_handler(MPI_Comm comm) noexcept;
// From now on communicators may hold processes of other MPI_COMM_WORLDs (spawn, connect, sessions).
void note_dynamic_processes() noexcept;
// Calls on this new communicator of MPIX_Stream_comm_create go to the library as they are.
void mark_stream_comm(MPI_Comm comm) noexcept;
// A session is opened. It may outlive MPI_Finalize.
void note_session() noexcept;

}  // namespace vecmpi::offload
