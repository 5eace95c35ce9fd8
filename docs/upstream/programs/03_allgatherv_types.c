// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allgatherv of ranks that describe the same values by other counts and types. Four ranks. Exit
// status 1, or an error: the fault is there.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ints = 60000 };  // of each rank

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank, size, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int together = rank % 2 == 0 ? 1 : 6;  // ints of an element
    MPI_Datatype type;
    MPI_Type_contiguous(together, MPI_INT, &type);
    MPI_Type_commit(&type);
    int* mine = malloc(ints * sizeof(int));
    int* all = calloc((size_t)size * ints, sizeof(int));
    int* counts = malloc((size_t)size * sizeof(int));
    int* places = malloc((size_t)size * sizeof(int));
    for (int i = 0; i < ints; ++i) mine[i] = rank * ints + i;
    for (int i = 0; i < size; ++i) {
        counts[i] = ints / together;
        places[i] = i * (ints / together);
    }
    const int code = MPI_Allgatherv(mine, ints, MPI_INT, all, counts, places, type, MPI_COMM_WORLD);
    for (int i = 0; i < size * ints; ++i) wrong += all[i] != i;
    const int fault = code != MPI_SUCCESS || wrong > 0;
    if (fault) {
        printf("rank %d: MPI_Allgatherv returns %d, %d of %d ints are wrong\n", rank, code, wrong,
               size * ints);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);  // the others wait
    }
    MPI_Finalize();
    return fault;
}
