// SPDX-License-Identifier: BSD-3-Clause
// MPI_Init and MPI_Finalize in a thread that is not main, which ends before the others.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

static void* run(void* unused) {
    int provided, rank, size, main_thread, sum;
    (void)unused;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    MPI_Is_thread_main(&main_thread);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Request requests[2];
    int out = rank, in = -1;
    MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d: main thread %d got %d sum %d\n", rank, main_thread, in, sum);
    MPI_Finalize();
    return NULL;
}

int main(void) {
    pthread_t thread;
    int ended;
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
    MPI_Finalized(&ended);
    printf("ended %d\n", ended);
    return 0;
}
