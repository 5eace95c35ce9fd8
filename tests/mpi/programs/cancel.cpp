// SPDX-License-Identifier: BSD-3-Clause
// MPI_Cancel of receives, MPI_Request_free of active requests. Must not leave a message unreceived.
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

int right() { return (world.rank + 1) % world.size; }
int left() { return (world.rank + world.size - 1) % world.size; }

// A receive that nothing matches: cancelled, completed by each of several calls.
void cancel_unmatched(MPI_Comm comm) {
    for (int way = 0; way < 6; ++way) {
        int value = 17;
        MPI_Request request;
        MPI_Status status;
        int flag = 0;
        int index = -1;
        MPI_Irecv(&value, 1, MPI_INT, way % 2 ? left() : MPI_ANY_SOURCE, 100 + way, comm, &request);
        if (way > 2) MPI_Test(&request, &flag, &status);
        check_equal(flag, 0, "flag of an unmatched receive");
        MPI_Cancel(&request);
        check(request != MPI_REQUEST_NULL, "a cancelled request is still to be completed");
        if (way == 0) MPI_Wait(&request, &status);
        if (way == 1) MPI_Waitall(1, &request, &status);
        if (way == 2) MPI_Waitany(1, &request, &index, &status);
        if (way == 3) MPI_Waitsome(1, &request, &flag, &index, &status);
        if (way == 4)
            while (!flag) MPI_Test(&request, &flag, &status);
        if (way == 5)
            while (!flag) MPI_Testall(1, &request, &flag, &status);
        int cancelled = -1;
        MPI_Test_cancelled(&status, &cancelled);
        check_equal(cancelled, 1, "cancelled");
        check(request == MPI_REQUEST_NULL, "null after completion");
        check_equal(value, 17, "buffer of a cancelled receive");
        topic("cancelled").add(static_cast<uint64_t>(cancelled));
    }
}

// Cancelling what is complete changes nothing.
void cancel_complete(MPI_Comm comm) {
    int in = -1;
    const int out = world.rank;
    MPI_Request request;
    MPI_Status status;
    int flag = 0;
    int cancelled = -1;
    MPI_Irecv(&in, 1, MPI_INT, left(), 7, comm, &request);
    MPI_Send(&out, 1, MPI_INT, right(), 7, comm);
    while (!flag) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    check_equal(cancelled, 0, "cancelled after completion");
    check_equal(in, left(), "received element");
    topic("complete").add_status(status, MPI_INT);
}

// A persistent receive is cancelled, then started again and matched.
void cancel_persistent(MPI_Comm comm) {
    int in = -1;
    const int out = world.rank + 50;
    MPI_Request request;
    MPI_Status status;
    int cancelled = -1;
    MPI_Recv_init(&in, 1, MPI_INT, left(), 8, comm, &request);
    MPI_Start(&request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    check_equal(cancelled, 1, "cancelled persistent receive");
    MPI_Barrier(comm);  // nothing is sent before all have cancelled
    MPI_Start(&request);
    MPI_Send(&out, 1, MPI_INT, right(), 8, comm);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    check_equal(cancelled, 0, "cancelled after the second start");
    check_equal(in, left() + 50, "received element");
    topic("persistent").add_status(status, MPI_INT);
    MPI_Request_free(&request);
}

// Freed sends and receives still happen; a later message on the same path tells when.
void free_active(MPI_Comm comm) {
    constexpr int messages = 20;
    std::vector<std::vector<int>> in(messages);
    std::vector<std::vector<int>> out(messages);
    for (int i = 0; i < messages; ++i) {
        const size_t length = i % 5 == 0 ? 30000 : static_cast<size_t>(i);
        in[static_cast<size_t>(i)].assign(length, -1);
        out[static_cast<size_t>(i)].assign(length, world.rank * 100 + i);
    }
    for (int i = 0; i < messages; ++i) {
        std::vector<int>& data = in[static_cast<size_t>(i)];
        MPI_Request request;
        MPI_Irecv(data.data(), static_cast<int>(data.size()), MPI_INT, left(), i, comm, &request);
        MPI_Request_free(&request);
        check(request == MPI_REQUEST_NULL, "a freed request is null");
    }
    for (int i = 0; i < messages; ++i) {
        const std::vector<int>& data = out[static_cast<size_t>(i)];
        MPI_Request request;
        MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_INT, right(), i, comm, &request);
        MPI_Request_free(&request);
    }
    // The data is there some time; only progress makes it so.
    for (int i = 0; i < messages; ++i) {
        const volatile int* last = in[static_cast<size_t>(i)].data();
        const size_t length = in[static_cast<size_t>(i)].size();
        int flag;
        while (length > 0 && last[length - 1] != left() * 100 + i)
            MPI_Iprobe(MPI_ANY_SOURCE, 9999, comm, &flag, MPI_STATUS_IGNORE);
        for (const int value : in[static_cast<size_t>(i)])
            check_equal(value, left() * 100 + i, "element of a freed receive");
    }
    topic("freed").add_bytes(in[15].data(), in[15].size() * sizeof(int));
    MPI_Barrier(comm);  // the send buffers are read until all have received
}

// Freed operations with a virtual or a real handle must not disturb the ones beside them.
void free_between(Random& random, MPI_Comm comm) {
    for (int round = 0; round < 10; ++round) {
        std::vector<int> in(8, -1);
        std::vector<int> out(8);
        std::vector<MPI_Request> requests(8);
        for (int i = 0; i < 8; ++i)
            MPI_Irecv(&in[static_cast<size_t>(i)], 1, MPI_INT, left(), i, comm,
                      &requests[static_cast<size_t>(i)]);
        for (int i = 0; i < 8; ++i) {
            MPI_Request request;
            out[static_cast<size_t>(i)] = world.rank + 10 * i + round;
            MPI_Isend(&out[static_cast<size_t>(i)], 1, MPI_INT, right(), i, comm, &request);
            MPI_Request_free(&request);
        }
        complete(random, requests);
        for (int i = 0; i < 8; ++i)
            check_equal(in[static_cast<size_t>(i)], left() + 10 * i + round, "element");
        MPI_Barrier(comm);
    }
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    Random random = own_random(5);
    cancel_unmatched(comm);
    cancel_complete(comm);
    cancel_persistent(comm);
    if (world.size > 1) free_active(comm);  // MPICH 4.0.2 loses freed receives from oneself
    free_between(random, comm);
    MPI_Comm_free(&comm);
    return end();
}
