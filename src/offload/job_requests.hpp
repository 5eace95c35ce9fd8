// SPDX-License-Identifier: BSD-3-Clause
// Requests that complete with a job.
#pragma once

#include "slots.hpp"

namespace vecmpi::offload {

// MPI_Start of a persistent job's inactive slot.
void start_job(Slot* slot) noexcept;
// MPI_Request_free.
void abandon_job(Slot* slot) noexcept;
// The job of this active slot is done. An abandoned slot is free afterwards.
void complete_job(Slot* slot, int error) noexcept;
// A request of a failed job was completed on this thread. The error is raised when the call ends.
void note_job_error(MPI_Comm comm, int error) noexcept;
// At the end of a call that completes requests: raises what was noted. Returns rc.
int after_job_errors(int rc) noexcept;

}  // namespace vecmpi::offload
