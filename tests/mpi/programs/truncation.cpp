// SPDX-License-Identifier: BSD-3-Clause
// Truncated receives with MPI_ERRORS_RETURN: codes, MPI_ERR_IN_STATUS, MPI_ERROR of statuses. Sizes
// are eager ones.
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

constexpr int messages = 6;  // the odd ones are too long for their receive

// Every rank sends to itself and to the right; receives what the left sent.
void post(MPI_Comm comm, int in[][4], MPI_Request requests[]) {
    static const int out[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    for (int i = 0; i < messages; ++i) MPI_Irecv(in[i], 4, MPI_INT, left, i, comm, &requests[i]);
    for (int i = 0; i < messages; ++i) MPI_Send(out, i % 2 ? 8 : 4, MPI_INT, right, i, comm);
}

void judge(int code, int i, const char* what) {
    check_class(code, i % 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS, what);
    topic(what).add(static_cast<uint64_t>(error_class(code)));
}

void by_wait(MPI_Comm comm) {
    int in[messages][4];
    MPI_Request requests[messages];
    MPI_Status status;
    post(comm, in, requests);
    for (int i = 0; i < messages; ++i) {
        judge(MPI_Wait(&requests[i], &status), i, "Wait");
        check(requests[i] == MPI_REQUEST_NULL, "null after an error");
        if (i % 2 == 0) check_equal(in[i][3], 4, "last element");
    }
}

void by_test(MPI_Comm comm) {
    int in[messages][4];
    MPI_Request requests[messages];
    post(comm, in, requests);
    for (int i = 0; i < messages; ++i) {
        int flag = 0;
        int code = MPI_SUCCESS;
        while (!flag && code == MPI_SUCCESS)
            code = MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
        judge(code, i, "Test");
    }
}

void by_recv(MPI_Comm comm) {
    const int out[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    for (int i = 0; i < messages; ++i) {
        int in[4];
        MPI_Request request;
        MPI_Isend(out, i % 2 ? 8 : 4, MPI_INT, right, i, comm, &request);
        judge(MPI_Recv(in, 4, MPI_INT, left, i, comm, MPI_STATUS_IGNORE), i, "Recv");
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "send");
    }
}

// Waits until all are complete, so that no request is pending when one fails.
void settle(MPI_Request requests[]) {
    for (int i = 0; i < messages; ++i) {
        int flag = 0;
        while (!flag) MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
    }
}

// MPI_ERR_IN_STATUS; how much of the rest is complete is up to the library (MPI 4.0, 3.7.5).
void by_waitall(MPI_Comm comm) {
    int in[messages][4];
    MPI_Request requests[messages];
    MPI_Status statuses[messages];
    post(comm, in, requests);
    settle(requests);
    check_class(MPI_Waitall(messages, requests, statuses), MPI_ERR_IN_STATUS, "Waitall");
    for (int i = 0; i < 2; ++i) judge(statuses[i].MPI_ERROR, i, "Waitall status");
    for (int i = 2; i < messages; ++i) {
        if (requests[i] == MPI_REQUEST_NULL) continue;
        check_class(statuses[i].MPI_ERROR, MPI_ERR_PENDING, "status of what is left");
        check_class(MPI_Wait(&requests[i], MPI_STATUS_IGNORE),
                    i % 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS, "Wait for what is left");
    }
}

void by_waitsome(MPI_Comm comm) {
    int in[messages][4];
    MPI_Request requests[messages];
    post(comm, in, requests);
    settle(requests);
    int left = messages;
    while (left > 0) {
        MPI_Status statuses[messages];
        int indices[messages];
        int found = 0;
        const int code = MPI_Waitsome(messages, requests, &found, indices, statuses);
        check(found != MPI_UNDEFINED, "something is left");
        bool any = false;
        for (int k = 0; k < found; ++k) any |= indices[k] % 2 == 1;
        check_class(code, any ? MPI_ERR_IN_STATUS : MPI_SUCCESS, "Waitsome");
        for (int k = 0; any && k < found; ++k)
            check_class(statuses[k].MPI_ERROR, indices[k] % 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS,
                        "Waitsome status");
        left -= found;
    }
}

void by_waitany(MPI_Comm comm) {
    int in[messages][4];
    MPI_Request requests[messages];
    post(comm, in, requests);
    for (int k = 0; k < messages; ++k) {
        int index = -1;
        const int code = MPI_Waitany(messages, requests, &index, MPI_STATUS_IGNORE);
        check(index >= 0 && index < messages, "index of Waitany with an error");
        check_class(code, index % 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS, "Waitany");
        check(requests[index] == MPI_REQUEST_NULL, "null after Waitany");
    }
}

// A successful single completion leaves MPI_ERROR of the status as it was (MPI 4.0, 3.2.5).
void error_field_stays(MPI_Comm comm) {
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    int in = 0;
    MPI_Request request;
    MPI_Status status;
    status.MPI_ERROR = 4711;
    MPI_Irecv(&in, 1, MPI_INT, left, 70, comm, &request);
    MPI_Send(&world.rank, 1, MPI_INT, right, 70, comm);
    MPI_Wait(&request, &status);
    check_equal(status.MPI_ERROR, 4711, "MPI_ERROR after Wait");
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // MPICH may ask it for a Wait
    by_wait(comm);
    by_test(comm);
    by_recv(comm);
    by_waitall(comm);
    MPI_Barrier(comm);
    by_waitsome(comm);
    by_waitany(comm);
    error_field_stays(comm);
    MPI_Comm_free(&comm);
    return end();
}
