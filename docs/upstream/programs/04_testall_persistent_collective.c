// SPDX-License-Identifier: BSD-3-Clause
// MPI_Testall refuses persistent collectives, active or not. One rank. Exit status 1: the fault is
// there.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    double in = 1, sum = 0;
    int flag = 0, active = MPI_SUCCESS, inactive = MPI_SUCCESS;
    MPI_Request request;
    MPI_Status status;
    MPI_Allreduce_init(&in, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    inactive = MPI_Testall(1, &request, &flag, &status);
    MPI_Start(&request);
    flag = 0;
    while (active == MPI_SUCCESS && !flag) active = MPI_Testall(1, &request, &flag, &status);
    MPI_Wait(&request, &status);
    MPI_Request_free(&request);
    const int fault = active != MPI_SUCCESS || inactive != MPI_SUCCESS || sum != 1;
    if (fault)
        printf("MPI_Testall returns %d for an active request, %d for an inactive one\n", active,
               inactive);
    MPI_Finalize();
    return fault;
}
