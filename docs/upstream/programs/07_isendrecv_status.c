// SPDX-License-Identifier: BSD-3-Clause
// The status of MPI_Isendrecv and MPI_Isendrecv_replace says nothing of the message received. One
// rank. Exit status 1: the fault is there.
#include <mpi.h>
#include <stdio.h>

enum { tag = 3 };

static int wrong_status(MPI_Request* request, const char* name) {
    int count = -1;
    MPI_Status status;
    MPI_Wait(request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    if (status.MPI_SOURCE == 0 && status.MPI_TAG == tag && count == 2) return 0;
    printf("%s: source %d, tag %d, count %d; not 0, %d, 2\n", name, status.MPI_SOURCE,
           status.MPI_TAG, count, tag);
    return 1;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int out[2] = {1, 2}, in[2] = {0};
    MPI_Request request;
    MPI_Isendrecv(out, 2, MPI_INT, 0, tag, in, 2, MPI_INT, 0, tag, MPI_COMM_SELF, &request);
    int fault = wrong_status(&request, "MPI_Isendrecv");
    MPI_Isendrecv_replace(in, 2, MPI_INT, 0, tag, 0, tag, MPI_COMM_SELF, &request);
    fault |= wrong_status(&request, "MPI_Isendrecv_replace");
    MPI_Finalize();
    return fault;
}
