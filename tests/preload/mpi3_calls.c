// SPDX-License-Identifier: BSD-3-Clause
// A short program that any MPI since version 3 compiles, Open MPI too.
#include "report.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = my_rank(), size = ranks(), left = (rank + size - 1) % size,
        right = (rank + 1) % size;
    double x = rank + 0.5, sum;
    int in = -1, flag;
    MPI_Comm copy;
    MPI_Status status;
    MPI_Request request;
    MPI_Irecv(&in, 1, MPI_INT, left, 4, MPI_COMM_WORLD, &request);
    MPI_Send(&rank, 1, MPI_INT, right, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    fact("got %d from %d tag %d", in, status.MPI_SOURCE, status.MPI_TAG);
    MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    fact("sum %g", sum);
    MPI_Iallreduce(&x, &sum, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    fact("max %g", sum);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
    fact("null %d in place %d", copy == MPI_COMM_NULL, MPI_IN_PLACE != NULL);
    MPI_Finalize();
    MPI_Finalized(&flag);
    return !flag;
}
