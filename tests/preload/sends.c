// SPDX-License-Identifier: BSD-3-Clause
// Sends from its constructor, once the other thread of loading.c waits in the MPI library.
#include <mpi.h>
#include <stdatomic.h>
#include <unistd.h>

extern atomic_int loading;

__attribute__((constructor)) static void send_to_the_other(void) {
    int rank, word = 1;
    atomic_store(&loading, 1);
    usleep(100000);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Send(&word, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD);
}
