// SPDX-License-Identifier: BSD-3-Clause
// After MPI_Init and some traffic the program closes every descriptor but the launcher's, as
// daemons do, and opens files in their place; ranks of one node go on. Nobody may touch the files.
// (MPI_Finalize needs what is closed.)
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { files = 40, bytes = 4096, place = 1000, rounds = 60 };
static volatile int over;

static void* compute(void* unused) {
    for (volatile unsigned long x = 1; !over;) x = x * 3 + 1;
    return unused;
}

static int communicate(int rank, int size) {
    int right = 1;
    for (int i = 0; i < rounds; ++i) {
        int sum = 0, got = -1;
        if (rank == i % size) usleep(3000);
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        right &= sum == size * (size - 1) / 2 && got == (rank + size - 1) % size;
    }
    return right;
}

int main(int argc, char** argv) {
    int rank, size, opened[files], touched = 0;
    char text[bytes], found[bytes];
    pthread_t thread;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pthread_create(&thread, NULL, compute, NULL);
    int right = communicate(rank, size);
    const char* const launcher = getenv("PMI_FD");
    for (int i = 3; i < 1024; ++i)
        if (launcher == NULL || i != atoi(launcher)) close(i);
    memset(text, 'a' + rank, bytes);
    for (int i = 0; i < files; ++i) {
        char name[] = "file.XXXXXX";
        opened[i] = mkstemp(name);
        unlink(name);
        right &= write(opened[i], text, bytes) == bytes;
        lseek(opened[i], place, SEEK_SET);
    }
    right &= communicate(rank, size);
    over = 1;
    pthread_join(thread, NULL);
    for (int i = 0; i < files; ++i)
        touched += lseek(opened[i], 0, SEEK_CUR) != place ||
                   pread(opened[i], found, bytes, 0) != bytes || memcmp(text, found, bytes) != 0;
    printf("rank %d: %s, %d files touched\n", rank, right ? "right" : "wrong", touched);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0);
}
