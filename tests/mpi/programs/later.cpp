// SPDX-License-Identifier: BSD-3-Clause
// Functions that came after MPI 4.0, where the library has them: looks at several requests, and
// buffers of a communicator. A library without them leaves weak references null, preloaded as
// plain.
#include <vector>

#include "battery.hpp"

using namespace battery;

extern "C" {
// A later mpi.h declares them, that of MPICH 4.2 without const.
#if MPI_VERSION == 4 && MPI_SUBVERSION == 0
int MPI_Request_get_status_all(int, const MPI_Request[], int*, MPI_Status[]);
int MPI_Request_get_status_any(int, const MPI_Request[], int*, int*, MPI_Status*);
int MPI_Request_get_status_some(int, const MPI_Request[], int*, int[], MPI_Status[]);
#endif
#pragma weak MPI_Request_get_status_all
#pragma weak MPI_Request_get_status_any
#pragma weak MPI_Request_get_status_some
int MPI_Comm_attach_buffer(MPI_Comm, void*, int) __attribute__((weak));
int MPI_Comm_detach_buffer(MPI_Comm, void*, int*) __attribute__((weak));
int MPI_Comm_flush_buffer(MPI_Comm) __attribute__((weak));
int MPIX_Request_is_complete(MPI_Request) __attribute__((weak));
}

namespace {

constexpr int messages = 6;

struct Exchange {
    std::vector<int> in = std::vector<int>(messages, -1), out = std::vector<int>(messages);
    std::vector<MPI_Request> requests = std::vector<MPI_Request>(messages + 1, MPI_REQUEST_NULL);
    std::vector<MPI_Status> statuses = std::vector<MPI_Status>(messages + 1);
    int left = (world.rank + world.size - 1) % world.size, right = (world.rank + 1) % world.size;

    void receive(MPI_Comm comm) {
        for (int i = 0; i < messages; ++i)
            MPI_Irecv(&in[at(i)], 1, MPI_INT, left, i, comm, &requests[at(i)]);
    }
    void send(MPI_Comm comm, int tag) {
        out[at(tag)] = 100 * world.rank + tag;
        MPI_Send(&out[at(tag)], 1, MPI_INT, right, tag, comm);
    }
    void finish(Digest& digest) {
        MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
        for (int i = 0; i < messages; ++i) check_equal(in[at(i)], 100 * left + i, "element");
        digest.add_bytes(in.data(), in.size() * sizeof(int));
    }
    static size_t at(int place) { return static_cast<size_t>(place); }
};

// The last place of `requests` stays null.
void look_at_any(MPI_Comm comm) {
    Exchange exchange;
    int index = 0, flag = 0;
    MPI_Request_get_status_any(messages + 1, exchange.requests.data(), &index, &flag,
                               &exchange.statuses[0]);
    check_equal(flag, 1, "flag over null requests");
    check_equal(index, MPI_UNDEFINED, "index over null requests");
    exchange.receive(comm);
    MPI_Request_get_status_any(messages + 1, exchange.requests.data(), &index, &flag,
                               &exchange.statuses[0]);
    check_equal(flag, 0, "flag before anything was sent");
    MPI_Barrier(comm);
    exchange.send(comm, 3);
    do
        MPI_Request_get_status_any(messages + 1, exchange.requests.data(), &index, &flag,
                                   &exchange.statuses[0]);
    while (!flag);
    check_equal(index, 3, "index of the message that came");
    topic("any").add_status(exchange.statuses[0], MPI_INT);
    for (int tag : {0, 1, 2, 4, 5}) exchange.send(comm, tag);
    exchange.finish(topic("any"));
}

void look_at_some(MPI_Comm comm) {
    Exchange exchange;
    int indices[messages + 1], number = 0;
    exchange.receive(comm);
    for (int tag : {5, 1}) exchange.send(comm, tag);
    do
        MPI_Request_get_status_some(messages + 1, exchange.requests.data(), &number, indices,
                                    exchange.statuses.data());
    while (number < 1);  // MPICH looks for no more where one is complete
    for (int i = 0; i < number; ++i) {
        check(indices[i] == 1 || indices[i] == 5, "index of a message that came");
        check_equal(exchange.statuses[Exchange::at(i)].MPI_TAG, indices[i], "tag at this index");
        check_equal(exchange.statuses[Exchange::at(i)].MPI_SOURCE, exchange.left, "source");
    }
    MPI_Barrier(comm);
    for (int tag : {0, 2, 3, 4}) exchange.send(comm, tag);
    exchange.finish(topic("some"));
}

void look_at_all(MPI_Comm comm) {
    Exchange exchange;
    int flag = 1;
    exchange.receive(comm);
    MPI_Request_get_status_all(messages + 1, exchange.requests.data(), &flag,
                               exchange.statuses.data());
    check_equal(flag, 0, "flag of all before anything was sent");
    MPI_Barrier(comm);
    for (int tag = 0; tag < messages; ++tag) exchange.send(comm, tag);
    do
        MPI_Request_get_status_all(messages + 1, exchange.requests.data(), &flag,
                                   exchange.statuses.data());
    while (!flag);
    for (int i = 0; i < messages; ++i)
        topic("all").add_status(exchange.statuses[Exchange::at(i)], MPI_INT);
    check_empty(exchange.statuses[messages]);
    exchange.finish(topic("all"));
}

void ask_one_by_one(MPI_Comm comm) {
    Exchange exchange;
    exchange.receive(comm);
    for (int tag = 0; tag < messages; ++tag) exchange.send(comm, tag);
    for (int i = 0; i < messages; ++i) {
        int found = 0;
        while (!MPIX_Request_is_complete(exchange.requests[Exchange::at(i)]))
            MPI_Iprobe(MPI_ANY_SOURCE, messages, comm, &found,
                       MPI_STATUS_IGNORE);  // it makes no progress itself
    }
    exchange.finish(topic("complete"));
}

// What was queued is in the buffer before it is flushed or taken away.
void send_from_buffer(MPI_Comm comm) {
    std::vector<char> buffer(messages * (sizeof(int) + MPI_BSEND_OVERHEAD));
    Exchange exchange;
    MPI_Request sends[messages];
    void* taken = nullptr;
    int size = 0;
    MPI_Comm_attach_buffer(comm, buffer.data(), static_cast<int>(buffer.size()));
    exchange.receive(comm);
    for (int i = 0; i < messages; ++i) {
        exchange.out[Exchange::at(i)] = 100 * world.rank + i;
        MPI_Ibsend(&exchange.out[Exchange::at(i)], 1, MPI_INT, exchange.right, i, comm, &sends[i]);
    }
    MPI_Comm_flush_buffer(comm);
    MPI_Comm_detach_buffer(comm, &taken, &size);
    check(taken == buffer.data(), "the buffer comes back");
    MPI_Waitall(messages, sends, MPI_STATUSES_IGNORE);
    exchange.finish(topic("buffer"));
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (MPI_Request_get_status_any && MPI_Request_get_status_some && MPI_Request_get_status_all) {
        look_at_any(comm);
        look_at_some(comm);
        look_at_all(comm);
    }
    if (MPIX_Request_is_complete) ask_one_by_one(comm);
    if (MPI_Comm_attach_buffer && MPI_Comm_detach_buffer && MPI_Comm_flush_buffer)
        send_from_buffer(comm);
    topic("done").add(1);
    MPI_Comm_free(&comm);
    return end();
}
