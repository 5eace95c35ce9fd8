// SPDX-License-Identifier: BSD-3-Clause
// Small collectives of ranks, one of which may not make files as large as shared memory needs.
// Prints the sums.
#include <sys/resource.h>

#include "report.h"

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 4096;
    if (rank == size - 1) setrlimit(RLIMIT_FSIZE, &limit);
    double sum = 0;
    for (int i = 0; i < 60; ++i) {
        double mine = rank + i;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    fact("sum: %g", sum);
    MPI_Finalize();
    return 0;
}
