// SPDX-License-Identifier: BSD-3-Clause
// Rank 1 is blocked in one call after another while rank 0 sleeps: MPI_Recv, MPI_Wait, MPI_Barrier,
// and an MPI_Allreduce of 32 KiB.
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { calls = 30, count = 8192, pause_us = 3000 };
static int in[count], out[count];

int main(int argc, char** argv) {
    int rank, token = 0, right = 1;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < count; ++i) in[i] = rank + i;
    for (int call = 0; call < calls; ++call) {
        if (rank == 0) {
            usleep(pause_us);
            MPI_Send(&call, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
            usleep(pause_us);
            MPI_Send(&call, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
            usleep(pause_us);
        } else {
            MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            right &= token == call;
            MPI_Irecv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            right &= token == call;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) usleep(pause_us);
        MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; ++i) right &= out[i] == 1 + 2 * i;
    }
    printf("rank %d: %s\n", rank, right ? "all as it must be" : "wrong");
    MPI_Finalize();
    return !right;
}
