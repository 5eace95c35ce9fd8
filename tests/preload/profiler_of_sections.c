// SPDX-License-Identifier: BSD-3-Clause
// A PMPI profiler with an MPI_Pcontrol of its own, to be preloaded before vecmpi. Prints in
// MPI_Finalize what it was told.
#include <mpi.h>
#include <stdio.h>

static int calls, sum;

int MPI_Pcontrol(const int level, ...) {
    ++calls;
    sum += level;
    return PMPI_Pcontrol(level);
}

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("%d: profiler: sections %d, sum of levels %d\n", rank, calls, sum);
    return PMPI_Finalize();
}
