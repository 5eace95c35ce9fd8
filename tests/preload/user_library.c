// SPDX-License-Identifier: BSD-3-Clause
// A library that uses MPI, for a host that loads it with RTLD_LOCAL: MPI then comes with it, late
// and invisible.
#include <mpi.h>
#include <stddef.h>

int library_start(void) { return MPI_Init(NULL, NULL); }

int library_rank(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

long library_sum(long mine) {
    long sum;
    MPI_Request request;
    MPI_Iallreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return sum;
}

int library_ring(int mine) {
    int size, got = -1, rank = library_rank();
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&mine, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return got;
}

int library_stop(void) { return MPI_Finalize(); }
