// SPDX-License-Identifier: BSD-3-Clause
// A receive whose request was freed does not complete in MPI_Finalize. Two ranks.
// Exit status 1: the fault is there.
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
    static int received = 0;
    const int sent = 5;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Request request;
    if (rank == 1) {
        MPI_Irecv(&received, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        usleep(100000);
        MPI_Send(&sent, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    if (rank != 1 || received == sent) return 0;
    printf("rank 1: received %d, not %d\n", received, sent);
    return 1;
}
