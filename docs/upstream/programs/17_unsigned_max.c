// SPDX-License-Identifier: BSD-3-Clause
// MPI_MAX and MPI_MIN compare unsigned integers as signed ones. One rank. Exit status 1: the fault
// is there.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const unsigned large = 4000000000;
    unsigned greater = 5, smaller = 5;
    MPI_Reduce_local(&large, &greater, 1, MPI_UNSIGNED, MPI_MAX);
    MPI_Reduce_local(&large, &smaller, 1, MPI_UNSIGNED, MPI_MIN);
    const int fault = greater != large || smaller != 5;
    if (fault) printf("of 5 and %u the maximum is %u, the minimum %u\n", large, greater, smaller);
    MPI_Finalize();
    return fault;
}
