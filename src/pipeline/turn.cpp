// SPDX-License-Identifier: BSD-3-Clause
// What ends a job whose ranks have chosen differently.
#include <cstdlib>

#include "offload/api.hpp"
#include "pipeline/api/turn.hpp"

namespace vecmpi::pipeline {

void choices_differ(Collective collective) noexcept {
    log_line(
        LogLevel::error,
        "VECMPI_TRIALS: ranks have chosen differently who serves MPI_%s: an error of vecmpi's. "
        "VECMPI_TRIALS=off avoids it",
        mpi_name_of(collective));
    real.Abort(MPI_COMM_WORLD, 3);
    std::abort();
}

}  // namespace vecmpi::pipeline
