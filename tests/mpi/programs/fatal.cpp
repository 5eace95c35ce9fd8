// SPDX-License-Identifier: BSD-3-Clause
// An error under MPI_ERRORS_ARE_FATAL ends the job. Argument: where the error is made. Never ends
// well.
#include <cstdio>
#include <cstdlib>

#include "battery.hpp"

using namespace battery;

int main(int argc, char** argv) {
    begin(argc, argv);
    const int out[4] = {1, 2, 3, 4};
    int in = 0;
    MPI_Request request;
    if (world.argument == "isend")
        MPI_Isend(out, 4, MPI_INT, world.size, 0, MPI_COMM_WORLD, &request);
    if (world.argument == "allreduce")
        MPI_Allreduce(out, &in, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD);
    if (world.argument == "freed") {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm freed = comm;
        MPI_Comm_free(&comm);
        MPI_Send(out, 4, MPI_INT, world.rank, 0, freed);
    }
    if (world.argument == "abort" && world.rank == world.size - 1) MPI_Abort(MPI_COMM_WORLD, 7);
    if (world.argument == "wait") {
        MPI_Irecv(&in, 1, MPI_INT, world.rank, 0, MPI_COMM_WORLD, &request);
        MPI_Send(out, 4, MPI_INT, world.rank, 0, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (world.argument == "exit" && world.rank == 0) std::_Exit(3);  // a rank dies without a word
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return end();
}
