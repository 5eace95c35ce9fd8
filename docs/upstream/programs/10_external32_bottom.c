// SPDX-License-Identifier: BSD-3-Clause
// MPI_Pack_external refuses MPI_BOTTOM. One rank. Exit status 1: the fault is there.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int value = 5;
    const int length = 1;
    char packed[64];
    MPI_Aint place, position = 0;
    MPI_Datatype type;
    MPI_Get_address(&value, &place);
    MPI_Type_create_hindexed(1, &length, &place, MPI_INT, &type);
    MPI_Type_commit(&type);
    const int code =
        MPI_Pack_external("external32", MPI_BOTTOM, 1, type, packed, sizeof packed, &position);
    const int fault = code != MPI_SUCCESS || position != 4;
    if (fault) printf("MPI_Pack_external returns %d, position is %d\n", code, (int)position);
    MPI_Type_free(&type);
    MPI_Finalize();
    return fault;
}
