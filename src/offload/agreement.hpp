// SPDX-License-Identifier: BSD-3-Clause
// Makes and drops the agreement of MPI_COMM_WORLD. Called by life.cpp only; readers use
// agreement().
#pragma once

#include "vecmpi/offload.hpp"

namespace vecmpi {

// Collective over MPI_COMM_WORLD. Ends the job with one line where a setting is bad or the ranks'
// settings differ. wants_twins: the library's own waits would keep the CPU from ranks that need it.
// serves_jobs: this rank goes on with jobs in whatever call it is.
void agree_over_world(bool wants_twins, bool serves_jobs, const WaitPolicy& policy) noexcept;
void forget_agreement() noexcept;

// Where several nodes are joined, ranks enter the real MPI_Finalize together: MPICH 4.0 over TCP
// closes its connections there, and a rank that is through leaves without answering one that came
// later, which then waits for ever.
void meet_before_finalize() noexcept;

}  // namespace vecmpi
