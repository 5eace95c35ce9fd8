// SPDX-License-Identifier: BSD-3-Clause
// How the MPI library rests in its own waits. Not a door: src/intercept only.
#pragma once

#include <cstdint>

#include "vecmpi/base.hpp"

namespace vecmpi {

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

// While it lives, UCX finds a higher threshold for rendezvous in the environment, unless the user
// set one: 64 KiB by Allreduce (messages of 32 and 16 KiB) on 4 ranks on 2 CPUs take 36 us instead
// of 80. No higher, since eager messages that nobody waits for fill memory. UCX reads it once, in
// MPI_Init.
class EagerUcx {
  public:
    explicit EagerUcx(bool wanted) noexcept;
    ~EagerUcx();
    EagerUcx(const EagerUcx&) = delete;
    EagerUcx& operator=(const EagerUcx&) = delete;

  private:
    bool set_;
};

}  // namespace vecmpi
