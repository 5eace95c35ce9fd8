// SPDX-License-Identifier: BSD-3-Clause
// Sessions without MPI_Init: two of them, one within the other, each with a communicator; then
// none.
#include <mpi.h>
#include <stdio.h>

static void talk(MPI_Session session, const char* tag) {
    MPI_Group group;
    MPI_Comm comm;
    MPI_Request requests[2];
    int rank, size, sum, in = -1;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 0, comm, &requests[0]);
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 0, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Barrier(comm);
    printf("%d: %s: got %d sum %d\n", rank, tag, in, sum);
    MPI_Comm_free(&comm);
}

int main(void) {
    MPI_Session first, second;
    int began, ended;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &first);
    talk(first, "first");
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &second);
    talk(second, "second");
    MPI_Session_finalize(&first);
    talk(second, "second alone");
    MPI_Session_finalize(&second);
    MPI_Initialized(&began);
    MPI_Finalized(&ended);
    printf("began %d ended %d\n", began, ended);
    return 0;
}
