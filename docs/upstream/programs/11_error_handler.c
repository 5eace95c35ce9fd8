// SPDX-License-Identifier: BSD-3-Clause
// After an error-handler function of the program, MPI_Wait returns success; or that function is not
// called. One rank. Exit status 1: the fault is there.
#include <mpi.h>
#include <stdio.h>

static int called = 0;

static void handle(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    (void)code;
    ++called;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    const int out[4] = {0};
    int in;
    MPI_Request received, sent;
    MPI_Irecv(&in, 1, MPI_INT, 0, 0, comm, &received);
    MPI_Isend(out, 4, MPI_INT, 0, 0, comm, &sent);
    const int code = MPI_Wait(&received, MPI_STATUS_IGNORE);  // truncated
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    const int fault = called != 1 || code == MPI_SUCCESS;
    if (fault) printf("MPI_Wait returns %d, the function was called %d times\n", code, called);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return fault;
}
