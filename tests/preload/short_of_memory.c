// SPDX-License-Identifier: BSD-3-Clause
// Collectives of ranks, one of which may not make files as large as shared memory needs. The
// argument: of how many KiB it may. Prints the sums.
#include <stdlib.h>
#include <sys/resource.h>

#include "report.h"

enum { most_elements = 8192 };

int main(int argc, char** argv) {
    int rank, size;
    static double mine[most_elements], sums[most_elements];
    static const int counts[] = {1, 128, 8192};  // for a line, a small slot, large ones
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = (rlim_t)atol(argv[1]) << 10;
    if (rank == size - 1) setrlimit(RLIMIT_FSIZE, &limit);
    for (int k = 0; k < 3; ++k) {
        double all = 0;
        for (int i = 0; i < 60; ++i) {
            for (int j = 0; j < counts[k]; ++j) mine[j] = rank + i + j;
            MPI_Allreduce(mine, sums, counts[k], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            MPI_Barrier(MPI_COMM_WORLD);
            for (int j = 0; j < counts[k]; ++j) all += sums[j];
        }
        fact("sum of %d: %g", counts[k], all);
    }
    MPI_Finalize();
    return 0;
}
