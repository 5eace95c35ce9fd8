// SPDX-License-Identifier: BSD-3-Clause
// Makes and drops the agreement of MPI_COMM_WORLD. For life.cpp only; readers use agreement().
#pragma once

#include "offload/api.hpp"

namespace vecmpi::offload {

// What a rank brings to the agreement.
struct OwnMeans {
    bool has_engine = false;   // false: there was no memory for one
    bool wants_twins = false;  // the library's own waits would take the CPU from ranks that need it
    bool serves_jobs = false;  // this rank goes on with jobs in whatever call it is
    bool is_alone_on_node = false;  // as far as the launcher says
};

// Collective over MPI_COMM_WORLD. Ends the job with one line where a setting is bad or the ranks'
// settings differ. False where some rank has no engine: then nothing is agreed on, and every call
// of every rank must go to the library. On several nodes the ranks will wait for each other in
// MPI_Finalize, after the program's callbacks.
bool agree_over_world(const OwnMeans& own, const WaitPolicy& policy) noexcept;
void forget_agreement() noexcept;

}  // namespace vecmpi::offload
