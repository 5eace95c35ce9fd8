// SPDX-License-Identifier: BSD-3-Clause
// Large collectives of ranks, one of which may not read the others' memory: from the first call on
// ("always"), from the second communicator on, after the ways were tried on the first ("later"), or
// now and then. The program's own process_vm_readv stands before the C library's. Prints sums.
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

static void collectives(MPI_Comm comm, int round) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *mine = malloc(n * sizeof *mine), *all = malloc(n * size * sizeof *all);
    for (int i = 0; i < n; ++i) mine[i] = i % 100 + rank + round;
    MPI_Allreduce(mine, all, n, MPI_INT, MPI_SUM, comm);
    fact("%d Allreduce %ld", round, total(all, n));
    memcpy(all, mine, n * sizeof *mine);
    MPI_Allreduce(MPI_IN_PLACE, all, n, MPI_INT, MPI_SUM, comm);
    fact("%d Allreduce in place %ld", round, total(all, n));
    MPI_Allgather(mine, n, MPI_INT, all, n, MPI_INT, comm);
    fact("%d Allgather %ld", round, total(all, n * size));
    MPI_Reduce_scatter_block(all, mine, n, MPI_INT, MPI_SUM, comm);
    fact("%d Reduce_scatter_block %ld", round, total(mine, n));
    MPI_Reduce_scatter_block(MPI_IN_PLACE, all, n, MPI_INT, MPI_MAX, comm);
    fact("%d Reduce_scatter_block in place %ld", round, total(all, n));
    MPI_Bcast(mine, n, MPI_INT, round % size, comm);
    fact("%d Bcast %ld", round, total(mine, n));
    free(mine);
    free(all);
}

int main(int argc, char** argv) {
    // The library's own messages read memory in the same way.
    setenv("UCX_TLS", "self,sysv,posix", 1);
    setenv("VECMPI_INTRANODE", "on", 1);
    const char* when = argc > 1 ? argv[1] : "";
    const int always = strcmp(when, "always") == 0, later = strcmp(when, "later") == 0;
    if (!later) setenv("VECMPI_SINGLE_COPY", "64K", 1);
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < rounds; ++round) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        refuses = rank == size - 1 && (always || (later ? round > 0 : round % 3 == 1));
        collectives(later ? comm : MPI_COMM_WORLD, round);
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
    return 0;
}
