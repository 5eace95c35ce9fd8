// SPDX-License-Identifier: BSD-3-Clause
// MPI_Pack writes behind a buffer that is too small, where position is not 0. One rank. Exit status
// 1: the fault is there.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    enum { size = 16, guard = 32 };
    const double values[2] = {1, 2};
    char buffer[size + guard], untouched[guard];
    memset(buffer, 'x', sizeof buffer);
    memset(untouched, 'x', sizeof untouched);
    int position = 8;  // 8 bytes are left for 16
    const int code = MPI_Pack(values, 2, MPI_DOUBLE, buffer, size, &position, MPI_COMM_WORLD);
    const int fault = memcmp(buffer + size, untouched, guard) != 0;
    if (fault)
        printf("MPI_Pack returns %d, position is %d of %d, bytes behind are written\n", code,
               position, size);
    MPI_Finalize();
    return fault;
}
