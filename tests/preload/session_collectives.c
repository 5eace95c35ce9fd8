// SPDX-License-Identifier: BSD-3-Clause
// Collectives, messages and a persistent collective on a session's communicator, before MPI_Init,
// beside MPI_COMM_WORLD, and after MPI_Finalize. "late": the session is opened after MPI_Init.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { count = 16384, rounds = 30 };
static float in[count], out[count];
static MPI_Session session;
static MPI_Comm comm;

static void open_session(void) {
    MPI_Group group;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
}

static void communicate(MPI_Comm on, const char* when) {
    int rank, size, right = 1;
    MPI_Comm_rank(on, &rank);
    MPI_Comm_size(on, &size);
    for (int round = 0; round < rounds; ++round) {
        MPI_Request request;
        float one = 1, sum = 0, got = 0;
        for (int i = 0; i < count; ++i) in[i] = (float)(i + round);
        MPI_Iallreduce(in, out, count, MPI_FLOAT, MPI_SUM, on, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&one, &sum, 1, MPI_FLOAT, MPI_SUM, on);
        MPI_Sendrecv(&one, 1, MPI_FLOAT, (rank + 1) % size, 0, &got, 1, MPI_FLOAT,
                     (rank + size - 1) % size, 0, on, MPI_STATUS_IGNORE);
        right &= sum == (float)size && got == 1;
        for (int i = 0; i < count; ++i) right &= out[i] == (float)(size * (i + round));
    }
    printf("%s: %s\n", when, right ? "all as it must be" : "wrong");
}

int main(int argc, char** argv) {
    const int late = argc > 1 && strcmp(argv[1], "late") == 0;
    MPI_Request persistent, receive;
    if (!late) {
        open_session();
        communicate(comm, "before MPI_Init");
    }
    MPI_Init(&argc, &argv);
    communicate(MPI_COMM_WORLD, "MPI_COMM_WORLD");
    if (late) open_session();
    communicate(comm, "beside MPI_COMM_WORLD");
    int rank, size;
    float got = 0, one = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Irecv(&got, 1, MPI_FLOAT, MPI_ANY_SOURCE, 3, comm, &receive);
    MPI_Allreduce_init(in, out, 4096, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &persistent);
    MPI_Start(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    MPI_Finalize();
    MPI_Send(&one, 1, MPI_FLOAT, (rank + 1) % size, 3, comm);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Start(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    MPI_Request_free(&persistent);
    communicate(comm, "after MPI_Finalize");
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return 0;
}
