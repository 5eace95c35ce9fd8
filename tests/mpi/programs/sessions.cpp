// SPDX-License-Identifier: BSD-3-Clause
// A session. Argument: alone (no MPI_Init at all), beside (with MPI_Init) or before (it makes
// requests that are used after MPI_Init). One only: MPICH 4.0.2 takes no second.
#include <cstdio>

#include "battery.hpp"

using namespace battery;

namespace {

struct Opened {
    MPI_Session session;
    MPI_Comm comm;
};

Opened open_session() {
    Opened opened;
    MPI_Group group;
    check_equal(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &opened.session), MPI_SUCCESS,
                "Session_init");
    MPI_Group_from_session_pset(opened.session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "battery", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &opened.comm);
    MPI_Group_free(&group);
    return opened;
}

void close_session(Opened opened) {
    MPI_Comm_disconnect(&opened.comm);
    MPI_Session_finalize(&opened.session);
}

void use(MPI_Comm comm) {
    int rank;
    int size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int right = (rank + 1) % size;
    const int left = (rank + size - 1) % size;
    for (int round = 0; round < 20; ++round) {
        int in = -1;
        int sum = -1;
        MPI_Request requests[2];
        MPI_Irecv(&in, 1, MPI_INT, left, round, comm, &requests[0]);
        MPI_Isend(&rank, 1, MPI_INT, right, round, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        check_equal(in, left, "message in a session");
        check_equal(sum, size * (size - 1) / 2, "sum in a session");
    }
    if (rank == 0) std::printf("rank 0 session of %d works\n", size);
    std::fflush(stdout);
}

void requests_from_before(int argc, char** argv) {
    const Opened opened = open_session();
    int size;
    int one = 1;
    int sum = -1;
    MPI_Request requests[2];
    MPI_Comm_size(opened.comm, &size);
    MPI_Barrier_init(opened.comm, MPI_INFO_NULL, &requests[0]);
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, opened.comm, MPI_INFO_NULL, &requests[1]);
    begin(argc, argv, MPI_THREAD_MULTIPLE);
    for (int round = 0; round < 3; ++round) {
        sum = -1;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_equal(sum, size, "sum by a persistent collective");
        topic("persistent collective").add(static_cast<uint64_t>(sum));
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
    close_session(opened);
}

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    if (world.argument == "before") {
        requests_from_before(argc, argv);
        return end();
    }
    if (world.argument == "beside") begin(argc, argv);
    const Opened opened = open_session();
    use(opened.comm);
    close_session(opened);
    return world.argument == "beside" ? end() : 0;
}
