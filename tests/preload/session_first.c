// SPDX-License-Identifier: BSD-3-Clause
// A session opened before MPI_Init and closed after MPI_Finalize: its requests are as old, plain
// and persistent ones. (UCX has read its environment when MPI_Init comes.)
#include <mpi.h>
#include <stdio.h>

enum { count = 50000 };
static int out[count], in[2][count];

int main(int argc, char** argv) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Request receives[2], sends[2];
    int rank, size, sum = 0, one = 1;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Init(&argc, &argv);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "first", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Irecv(in[0], count, MPI_INT, left, 0, comm, &receives[0]);
    MPI_Recv_init(in[1], count, MPI_INT, left, 1, comm, &receives[1]);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    for (int i = 0; i < count; ++i) out[i] = rank + i;
    MPI_Start(&receives[1]);
    for (int i = 0; i < 2; ++i) MPI_Isend(out, count, MPI_INT, right, i, comm, &sends[i]);
    const int rc = MPI_Waitall(2, receives, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
    printf("%d of %d: %d, got %d and %d\n", rank, sum, rc, in[0][count - 1], in[1][count - 1]);
    MPI_Request_free(&receives[1]);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return 0;
}
