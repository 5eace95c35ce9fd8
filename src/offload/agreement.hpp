// SPDX-License-Identifier: BSD-3-Clause
// Makes and drops the agreement of MPI_COMM_WORLD. Called by life.cpp only; readers use
// agreement().
#pragma once

#include "vecmpi/offload.hpp"

namespace vecmpi {

// Collective over MPI_COMM_WORLD. Ends the job with one line where a setting is bad or the ranks'
// settings differ. wants_twins: the library's own waits would keep the CPU from ranks that need it.
// serves_jobs: this rank goes on with jobs in whatever call it is. Over several nodes, ranks wait
// for each other in MPI_Finalize from then on, behind the program's callbacks.
void agree_over_world(bool wants_twins, bool serves_jobs, const WaitPolicy& policy) noexcept;
void forget_agreement() noexcept;

}  // namespace vecmpi
