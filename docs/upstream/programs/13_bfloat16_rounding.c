// SPDX-License-Identifier: BSD-3-Clause
// Sums of bfloat16 that lie half-way between two numbers are rounded away from zero, not to the
// even one. One rank. Exit status 1: the fault is there.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

#ifndef MPIX_BFLOAT16
#define MPIX_BFLOAT16 ((MPI_Datatype)0x4c00024c)  // of MPICH 5
#endif

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, major = 0, fault = 0;
    MPI_Get_library_version(version, &length);
    if (sscanf(version, "MPICH Version: %d", &major) == 1 &&
        major >= 5) {                   // the others have no such type
        const uint16_t small = 0x3b80;  // 2^-8, half the last place of 1
        uint16_t sum = 0x3f80;          // 1
        const int code = MPI_Reduce_local(&small, &sum, 1, MPIX_BFLOAT16, MPI_SUM);
        fault = code == MPI_SUCCESS && sum != 0x3f80;
        if (fault) printf("1 + 2^-8 is %#06x, not 0x3f80\n", (unsigned)sum);
    }
    MPI_Finalize();
    return fault;
}
