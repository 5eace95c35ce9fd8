// SPDX-License-Identifier: BSD-3-Clause
// Large collectives of ranks, one of which may not read the others' memory: from the first call on
// ("always"), or now and then. The program's own process_vm_readv stands before the C library's.
// Prints sums.
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "report.h"

static int refuses;

ssize_t process_vm_readv(pid_t process, const struct iovec* here, unsigned long n_here,
                         const struct iovec* there, unsigned long n_there, unsigned long flags) {
    if (refuses) {
        errno = EPERM;
        return -1;
    }
    return syscall(SYS_process_vm_readv, process, here, n_here, there, n_there, flags);
}

enum { n = 60000, rounds = 12 };

static long total(const int* values, int count) {
    long sum = 0;
    for (int i = 0; i < count; ++i) sum += (long)values[i] * (i % 7 + 1);
    return sum;
}

int main(int argc, char** argv) {
    // The library's own messages read memory in the same way.
    setenv("UCX_TLS", "self,sysv,posix", 1);
    setenv("VECMPI_INTRANODE", "on", 1);
    setenv("VECMPI_SINGLE_COPY", "64K", 1);
    int rank, size, always = argc > 1 && strcmp(argv[1], "always") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *mine = malloc(n * sizeof *mine), *all = malloc(n * size * sizeof *all);
    for (int round = 0; round < rounds; ++round) {
        refuses = rank == size - 1 && (always || round % 3 == 1);
        for (int i = 0; i < n; ++i) mine[i] = i % 100 + rank + round;
        MPI_Allreduce(mine, all, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        fact("%d Allreduce %ld", round, total(all, n));
        memcpy(all, mine, n * sizeof *mine);
        MPI_Allreduce(MPI_IN_PLACE, all, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        fact("%d Allreduce in place %ld", round, total(all, n));
        MPI_Allgather(mine, n, MPI_INT, all, n, MPI_INT, MPI_COMM_WORLD);
        fact("%d Allgather %ld", round, total(all, n * size));
        MPI_Reduce_scatter_block(all, mine, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        fact("%d Reduce_scatter_block %ld", round, total(mine, n));
        MPI_Reduce_scatter_block(MPI_IN_PLACE, all, n, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        fact("%d Reduce_scatter_block in place %ld", round, total(all, n));
        MPI_Bcast(mine, n, MPI_INT, round % size, MPI_COMM_WORLD);
        fact("%d Bcast %ld", round, total(mine, n));
    }
    free(mine);
    free(all);
    MPI_Finalize();
    return 0;
}
