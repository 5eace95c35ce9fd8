// SPDX-License-Identifier: BSD-3-Clause
// Persistent collectives send what the buffer held when they were made, not when they are started.
// Two ranks. Exit status 1: the fault is there.
#include <mpi.h>
#include <stdio.h>

enum { most = 64 };

static int rank, size;

static int wrong_at(MPI_Request* request, int* mine, const int* all, int is_receiver) {
    int wrong = 0;
    for (int start = 1; start < 4; ++start) {
        *mine = 100 * start + rank;
        MPI_Start(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
        for (int i = 0; i < size && is_receiver; ++i) wrong += all[i] != 100 * start + i;
    }
    MPI_Request_free(request);
    return wrong;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int mine = -1, all[most] = {0}, anyone = 0;
    MPI_Request request;
    MPI_Allgather_init(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    const int allgather = wrong_at(&request, &mine, all, 1);
    mine = -1;
    MPI_Gather_init(&mine, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    const int gather = wrong_at(&request, &mine, all, rank == 0);
    const int here = allgather + gather > 0;
    if (here)
        printf("rank %d: %d wrong of MPI_Allgather_init, %d of MPI_Gather_init\n", rank, allgather,
               gather);
    MPI_Allreduce(&here, &anyone, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return anyone;
}
