// SPDX-License-Identifier: BSD-3-Clause
// Packed values that are received by a derived datatype, longer than a piece of the transport. Two
// ranks. Exit status 1, or no end: the fault is there.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { count = 10000 };

struct record {
    int number;
    double weight;
};

int main(int argc, char** argv) {
    setenv("MPIR_CVAR_CH4_CMA_ENABLE", "0",
           0);  // with it MPICH 5 copies such a message within a node in one piece
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank, fault = 0, position = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, 8};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    MPI_Datatype type;
    MPI_Type_create_struct(2, lengths, places, types, &type);
    MPI_Type_commit(&type);
    struct record* records = calloc(count, sizeof *records);
    char* packed = malloc(12 * count);
    if (rank == 0) {
        for (int i = 0; i < count; ++i) records[i] = (struct record){i, i / 2.};
        MPI_Pack(records, count, type, packed, 12 * count, &position, MPI_COMM_WORLD);
        MPI_Send(packed, position, MPI_PACKED, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        const int code = MPI_Recv(records, count, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int wrong = 0;
        for (int i = 0; i < count; ++i)
            wrong += records[i].number != i || records[i].weight != i / 2.;
        fault = code != MPI_SUCCESS || wrong > 0;
        if (fault) printf("MPI_Recv returns %d, %d of %d records are wrong\n", code, wrong, count);
    }
    free(records);
    free(packed);
    MPI_Type_free(&type);
    fflush(stdout);
    if (fault) MPI_Abort(MPI_COMM_WORLD, 1);  // MPI_Finalize may never end
    MPI_Finalize();
    return 0;
}
