// SPDX-License-Identifier: BSD-3-Clause
// A thread that waits in MPI is cancelled meanwhile; what it waits for comes afterwards, and it
// ends at a point of cancellation of its own. "barrier": it waits in MPI_Barrier, otherwise in
// MPI_Recv.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { rounds = 20, data = 7, seen = 8 };
static MPI_Comm comm;
static int rank, in_barrier;
static volatile int over;

static void meet(void) {
    int x = 1;
    if (in_barrier)
        MPI_Barrier(comm);
    else if (rank == 0)
        MPI_Recv(&x, 1, MPI_INT, 1, data, comm, MPI_STATUS_IGNORE);
    else
        MPI_Send(&x, 1, MPI_INT, 0, data, comm);
}

static void* wait_for_ever(void* unused) {
    for (;;) {
        meet();
        pthread_testcancel();
    }
    return unused;
}

static void* compute(void* unused) {
    for (volatile unsigned long x = 1; !over;) x = x * 3 + 1;
    return unused;
}

int main(int argc, char** argv) {
    int provided, x = 1;
    pthread_t waiting, computing;
    void* result = NULL;
    in_barrier = argc > 1 && strcmp(argv[1], "barrier") == 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    pthread_create(&computing, NULL, compute, NULL);
    if (rank == 0) {
        pthread_create(&waiting, NULL, wait_for_ever, NULL);
        for (int i = 0; i < rounds; ++i)
            MPI_Recv(&x, 1, MPI_INT, 1, seen, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_cancel(waiting);
        usleep(20000);
        MPI_Send(&x, 1, MPI_INT, 1, seen, MPI_COMM_WORLD);
        pthread_join(waiting, &result);
        printf("rank 0: cancelled %d\n", result == PTHREAD_CANCELED);
    } else {
        for (int i = 0; i < rounds; ++i) {
            meet();
            usleep(4000);
            MPI_Send(&x, 1, MPI_INT, 0, seen, MPI_COMM_WORLD);
        }
        MPI_Recv(&x, 1, MPI_INT, 0, seen, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(20000);
        meet();
    }
    over = 1;
    pthread_join(computing, NULL);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
