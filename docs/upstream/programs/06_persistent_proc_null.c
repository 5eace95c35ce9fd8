// SPDX-License-Identifier: BSD-3-Clause
// An active persistent request from or to MPI_PROC_NULL is taken for an inactive one where one or
// some of several are asked for. One rank. Exit status 1: the fault is there.
#include <mpi.h>
#include <stdio.h>

static int not_reported(MPI_Request* request, const char* name) {
    int index = -1, some = -1, indices[1];
    MPI_Status status;
    MPI_Start(request);
    MPI_Waitany(1, request, &index, &status);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    MPI_Start(request);
    MPI_Waitsome(1, request, &some, indices, &status);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (index == 0 && some == 1) return 0;
    printf("%s: index %d of MPI_Waitany, outcount %d of MPI_Waitsome (%d: MPI_UNDEFINED)\n", name,
           index, some, MPI_UNDEFINED);
    return 1;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int value = 0, fault = 0;
    MPI_Request request;
    MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    fault |= not_reported(&request, "MPI_Send_init");
    MPI_Request_free(&request);
    MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    fault |= not_reported(&request, "MPI_Recv_init");
    MPI_Request_free(&request);
    MPI_Finalize();
    return fault;
}
