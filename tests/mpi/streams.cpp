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

void complete_some(std::vector<MPI_Request>& requests, Random& own) {
    int flag = 0, index = 0, count = static_cast<int>(requests.size());
    std::vector<int> indices(requests.size());
    if (count == 0) return;
    const auto any = static_cast<size_t>(own.below(count));
    switch (own.below(5)) {
        case 0:
            MPI_Wait(&requests[any], MPI_STATUS_IGNORE);
            break;
        case 1:
            MPI_Test(&requests[any], &flag, MPI_STATUS_IGNORE);
            break;
        case 2:
            MPI_Waitany(count, requests.data(), &index, MPI_STATUS_IGNORE);
            break;
        case 3:
            MPI_Testsome(count, requests.data(), &index, indices.data(), MPI_STATUSES_IGNORE);
            break;
        default:
            MPI_Testall(count, requests.data(), &flag, MPI_STATUSES_IGNORE);
    }
}

}  // namespace battery
