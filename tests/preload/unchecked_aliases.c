// SPDX-License-Identifier: BSD-3-Clause
// Calls that MPICH refuses because one buffer, or none, is named for both sides, though no byte of
// it is both read and written. With MPIR_CVAR_COLL_ALIAS_CHECK=0, as in a library built without
// argument checks, they are calls like others.
#include <mpi.h>
#include <stdio.h>

enum { most = 16, rounds = 60 };

int main(int argc, char** argv) {
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int last = size - 1;
    int none[most] = {0}, ones[most], places[most];
    for (int i = 0; i < size; ++i) ones[i] = i != last, places[i] = i;
    for (int round = 0; round < rounds; ++round) {
        int out[most], in[most] = {0};
        for (int i = 0; i < size; ++i) out[i] = 100 * rank + i + round;
        if (rank == last)  // has no data
            MPI_Alltoallv(NULL, none, none, MPI_INT, NULL, none, none, MPI_INT, MPI_COMM_WORLD);
        else
            MPI_Alltoallv(out, ones, places, MPI_INT, in, ones, places, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < last && rank != last; ++i) wrong += in[i] != 100 * i + rank + round;

        int mine = rank + round, before = -1;  // rank 0 of an Exscan gets nothing
        MPI_Exscan(&mine, rank == 0 ? &mine : &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += rank > 0 && before != rank * (rank - 1) / 2 + rank * round;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("rank %d: %d wrong\n", rank, wrong);
    MPI_Finalize();
    return wrong != 0;
}
