// SPDX-License-Identifier: BSD-3-Clause
// A PMPI profiler, to be preloaded before vecmpi: counts calls and hands them on. Prints its counts
// in MPI_Finalize. Defines PMPI_Init as well, as Darshan does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int sends, receives, waits, reductions;

int PMPI_Init(int* argc, char*** argv) {
    int (*next)(int*, char***) = (int (*)(int*, char***))dlsym(RTLD_NEXT, "PMPI_Init");
    return next(argc, argv);
}
int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    ++sends;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int MPI_Irecv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
    ++receives;
    return PMPI_Irecv(buf, count, datatype, source, tag, comm, request);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    ++waits;
    return PMPI_Wait(request, status);
}

int MPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm) {
    ++reductions;
    return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("%d: profiler: %d sends %d receives %d waits %d reductions\n", rank, sends, receives,
           waits, reductions);
    return PMPI_Finalize();
}
