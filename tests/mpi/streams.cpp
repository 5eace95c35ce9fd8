// SPDX-License-Identifier: BSD-3-Clause
// Communicators and ranks that lag.
#include "streams.hpp"

#include <unistd.h>

namespace battery {

Comm make_comm(int kind) {
    Comm made{MPI_COMM_NULL, 0, 1};
    switch (kind) {
        case 0:
            MPI_Comm_dup(MPI_COMM_WORLD, &made.handle);
            break;
        case 1:
            MPI_Comm_split(MPI_COMM_WORLD, 0, -world.rank, &made.handle);
            break;
        default:
            MPI_Comm_split(MPI_COMM_WORLD, world.rank % kind, world.rank, &made.handle);
    }
    MPI_Comm_rank(made.handle, &made.rank);
    MPI_Comm_size(made.handle, &made.size);
    return made;
}

void lag(Random& own, int percent) {
    if (own.chance(percent)) usleep(static_cast<unsigned>(own.between(1, 300)));
}

}  // namespace battery
