// SPDX-License-Identifier: BSD-3-Clause
// User error handlers: called once, on the right communicator, on the thread of the call. Each rank
// errs alone.
#include <unistd.h>

#include <thread>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

struct Called {
    MPI_Comm comm;
    int error_class;
    std::thread::id thread;
};
std::vector<Called> calls;

void handler(MPI_Comm* comm, int* code, ...) {
    calls.push_back({*comm, error_class(*code), std::this_thread::get_id()});
}

// What the handler has seen since the last time.
void expect_call(MPI_Comm comm, int expected_class, const char* what) {
    check_equal(static_cast<int64_t>(calls.size()), 1, what);
    check(calls[0].comm == comm, "communicator of the error handler");
    check(calls[0].thread == std::this_thread::get_id(), "thread of the error handler");
    check_equal(calls[0].error_class, expected_class, what);
    topic(what).add(static_cast<uint64_t>(expected_class));
    calls.clear();
}

void bad_calls(MPI_Comm comm) {
    int value = 0;
    MPI_Request request;
    MPI_Send(&value, 1, MPI_INT, world.size, 0, comm);
    expect_call(comm, MPI_ERR_RANK, "Send");
    MPI_Isend(&value, 1, MPI_INT, 0, -4, comm, &request);
    expect_call(comm, MPI_ERR_TAG, "Isend");
    MPI_Irecv(&value, -1, MPI_INT, 0, 0, comm, &request);
    expect_call(comm, MPI_ERR_COUNT, "Irecv");
    MPI_Recv(&value, 1, MPI_DATATYPE_NULL, 0, 0, comm, MPI_STATUS_IGNORE);
    expect_call(comm, MPI_ERR_TYPE, "Recv");
    MPI_Bcast(&value, 1, MPI_INT, -1, comm);
    expect_call(comm, MPI_ERR_ROOT, "Bcast");
    MPI_Iallreduce(&value, &value, 1, MPI_INT, MPI_SUM, comm, &request);
    expect_call(comm, MPI_ERR_BUFFER, "Iallreduce");
}

// Truncation shows at the end of the operation, in Recv or in Wait.
void truncated(MPI_Comm comm) {
    const int out[4] = {1, 2, 3, 4};
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    int in = 0;
    MPI_Request request;
    MPI_Request send;
    MPI_Isend(out, 4, MPI_INT, right, 0, comm, &send);
    MPI_Recv(&in, 1, MPI_INT, left, 0, comm, MPI_STATUS_IGNORE);
    expect_call(comm, MPI_ERR_TRUNCATE, "truncated Recv");
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Irecv(&in, 1, MPI_INT, left, 0, comm, &request);
    MPI_Isend(out, 4, MPI_INT, right, 0, comm, &send);
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_class(code, MPI_ERR_TRUNCATE, "truncated Wait");
    // Which communicator MPICH asks for a Wait depends on the message; it is asked once.
    check_equal(static_cast<int64_t>(calls.size()), 1, "calls for a truncated Wait");
    calls.clear();
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    check(calls.empty(), "no call for a good send");
}

// A matched receive names no communicator.
void matched() {
    std::vector<int> out(4000, 1);
    std::vector<int> in(4000);
    MPI_Message message;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Request send;
    for (const bool bad_type : {true, false}) {
        MPI_Isend(out.data(), 4000, MPI_INT, world.rank, 9, MPI_COMM_WORLD, &send);
        MPI_Mprobe(world.rank, 9, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        if (bad_type) {
            MPI_Imrecv(in.data(), 4000, MPI_DATATYPE_NULL, &message, &request);
            expect_call(MPI_COMM_WORLD, MPI_ERR_TYPE, "type of Imrecv");
        }
        MPI_Imrecv(in.data(), bad_type ? 4000 : 2000, MPI_INT, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (!bad_type) expect_call(MPI_COMM_WORLD, MPI_ERR_TRUNCATE, "truncated Imrecv");
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
    check(calls.empty(), "no call for a good matched receive");
}

// Two communicators with handlers of their own, one without.
void several() {
    MPI_Comm first;
    MPI_Comm second;
    MPI_Errhandler own;
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    MPI_Comm_set_errhandler(first, own);
    MPI_Comm_set_errhandler(second, own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Errhandler_free(&own);
    bad_calls(first);
    bad_calls(second);
    bad_calls(MPI_COMM_WORLD);
    truncated(second);
    matched();
    MPI_Comm_set_errhandler(first, MPI_ERRORS_RETURN);  // changed in between
    int value = 0;
    check_class(MPI_Send(&value, 1, MPI_INT, 99, 0, first), MPI_ERR_RANK, "code after a change");
    check(calls.empty(), "the old handler is not called");
    MPI_Comm_call_errhandler(second, MPI_ERR_OTHER);
    expect_call(second, MPI_ERR_OTHER, "Comm_call_errhandler");
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
}

// A handler that comes after the operation sees the operation's own error.
void late() {
    std::vector<int> out(4000, 1);
    std::vector<int> in(4000);
    MPI_Request requests[2];
    MPI_Errhandler own;
    MPI_Irecv(in.data(), 2000, MPI_INT, world.rank, 11, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in.data() + 2000, 2000, MPI_INT, world.rank, 12, MPI_COMM_WORLD, &requests[1]);
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Errhandler_free(&own);
    MPI_Request sends[2];
    MPI_Isend(out.data(), 2000, MPI_INT, world.rank, 12, MPI_COMM_WORLD, &sends[1]);
    MPI_Isend(out.data(), 4000, MPI_INT, world.rank, 11, MPI_COMM_WORLD, &sends[0]);
    check_class(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "truncated Wait");
    expect_call(MPI_COMM_WORLD, MPI_ERR_TRUNCATE, "handler after the operation");
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
    check(calls.empty(), "no call for a good message");
}

// A communicator's handler that changes while a receive is pending, or between Recv_init and Start.
void changed(bool persistent, bool function, bool world_returns) {
    std::vector<int> out(4000, 1);
    std::vector<int> in(4000);
    MPI_Comm comm;
    MPI_Errhandler own;
    MPI_Request request;
    MPI_Request send;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    if (persistent)
        MPI_Recv_init(in.data(), 2000, MPI_INT, 0, 13, comm, &request);
    else
        MPI_Irecv(in.data(), 2000, MPI_INT, 0, 13, comm, &request);
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(comm, function ? own : MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&own);
    if (world_returns) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (persistent) MPI_Start(&request);
    MPI_Isend(out.data(), 4000, MPI_INT, 0, 13, comm, &send);
    usleep(1000);  // time for an offload thread
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "truncated Wait");
    if (function) expect_call(comm, MPI_ERR_TRUNCATE, "handler that came while it was pending");
    check(calls.empty(), "the handler that the communicator has now");
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    if (persistent) MPI_Request_free(&request);
    MPI_Comm_free(&comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// A handler is inherited by Comm_dup.
void inherited() {
    MPI_Comm child;
    MPI_Comm_dup(MPI_COMM_WORLD, &child);
    int value = 0;
    MPI_Send(&value, 1, MPI_INT, 99, 0, child);
    expect_call(child, MPI_ERR_RANK, "inherited handler");
    MPI_Comm_free(&child);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    for (const bool persistent : {true, false})
        for (const bool function : {false, true}) {
            changed(persistent, function, false);
            changed(persistent, function, true);
        }
    late();
    several();
    inherited();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return end();
}
