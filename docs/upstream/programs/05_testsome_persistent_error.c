// SPDX-License-Identifier: BSD-3-Clause
// MPI_Testsome and MPI_Waitsome say that a persistent receive failed, and not why. One rank. Exit
// status 1: the fault is there.
#include <mpi.h>
#include <stdio.h>

static int class_of(int code) {
    int result;
    MPI_Error_class(code, &result);
    return result;
}

// A receive of one int, to which four are sent.
static int loses_error(MPI_Request* request, int waits) {
    const int values[4] = {0};
    int done = 0, index, code = MPI_SUCCESS;
    MPI_Request sent;
    MPI_Status status;
    status.MPI_ERROR = MPI_SUCCESS;
    MPI_Isend(values, 4, MPI_INT, 0, 1, MPI_COMM_SELF, &sent);
    if (waits) code = MPI_Waitsome(1, request, &done, &index, &status);
    while (!waits && code == MPI_SUCCESS && done == 0)
        code = MPI_Testsome(1, request, &done, &index, &status);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    return class_of(code) == MPI_ERR_IN_STATUS && class_of(status.MPI_ERROR) != MPI_ERR_TRUNCATE;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int value, fault = 0;
    MPI_Request request;
    MPI_Recv_init(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    for (int waits = 0; waits < 2; ++waits) {
        MPI_Start(&request);
        if (!loses_error(&request, waits)) continue;
        printf("%s: MPI_ERR_IN_STATUS, and no error in the status\n",
               waits ? "MPI_Waitsome" : "MPI_Testsome");
        fault = 1;
    }
    MPI_Request_free(&request);
    MPI_Finalize();
    return fault;
}
