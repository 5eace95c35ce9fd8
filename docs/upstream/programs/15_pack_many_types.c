// SPDX-License-Identifier: BSD-3-Clause
// MPI_Pack of a contiguous type leaves bytes out in a program that has many types. One rank. Exit
// status 1: the fault is there.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const double values[5] = {1, 2, 3, 4, 5};
    char packed[64];
    int fault = 0;
    for (int i = 0; i < 1000 && !fault; ++i) {
        MPI_Datatype type;  // stays
        int position = 0;
        MPI_Type_contiguous(5, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        MPI_Pack(values, 1, type, packed, sizeof packed, &position, MPI_COMM_WORLD);
        fault = position != sizeof values;
        if (fault) printf("type %d: %d of %d bytes are packed\n", i, position, (int)sizeof values);
    }
    MPI_Finalize();
    return fault;
}
