// SPDX-License-Identifier: BSD-3-Clause
// Callbacks that call MPI: attribute functions in Comm_dup and Comm_free, user operators, a
// handler. To self only. Callbacks that wait for another thread which calls MPI.
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

int copies = 0;
int deletions = 0;

// A message to oneself by nonblocking calls, as an attribute function of a library might do.
int message_to_self(MPI_Comm comm, int value) {
    int rank;
    int in = -1;
    MPI_Request requests[2];
    MPI_Comm_rank(comm, &rank);
    MPI_Irecv(&in, 1, MPI_INT, rank, 31, comm, &requests[0]);
    MPI_Isend(&value, 1, MPI_INT, rank, 31, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    return in;
}

int copy_attribute(MPI_Comm comm, int, void*, void* in, void* out, int* flag) {
    ++copies;
    check_equal(message_to_self(comm, 40 + copies), 40 + copies, "message in a copy function");
    int in_self = -1;
    MPI_Sendrecv(&copies, 1, MPI_INT, 0, 1, &in_self, 1, MPI_INT, 0, 1, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    check_equal(in_self, copies, "Sendrecv in a copy function");
    *static_cast<void**>(out) = in;
    *flag = 1;
    return MPI_SUCCESS;
}

int delete_attribute(MPI_Comm, int, void*, void*) {
    ++deletions;
    check_equal(message_to_self(MPI_COMM_SELF, 60), 60, "message in a delete function");
    return MPI_SUCCESS;
}

void attributes() {
    int key;
    int value = 5;
    MPI_Comm comm;
    MPI_Comm copy;
    MPI_Request pending;
    int in = -1;
    MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, nullptr);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, key, &value);
    MPI_Irecv(&in, 1, MPI_INT, world.rank, 77, comm, &pending);  // outstanding all the time
    for (int i = 0; i < 3; ++i) {
        MPI_Comm_dup(comm, &copy);
        void* found = nullptr;
        int flag = 0;
        MPI_Comm_get_attr(copy, key, &found, &flag);
        check(flag && found == &value, "the attribute was copied");
        MPI_Comm_free(&copy);
    }
    MPI_Send(&value, 1, MPI_INT, world.rank, 77, comm);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    check_equal(in, value, "receive outstanding across callbacks");
    MPI_Comm_delete_attr(comm, key);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
    check_equal(copies, 3, "calls of the copy function");
    check_equal(deletions, 4, "calls of the delete function");
    topic("attributes").add(static_cast<uint64_t>(copies * 100 + deletions));
}

// Asks for the type, and uses cheap calls that a library may make here.
void operation(void* in, void* inout, int* count, MPI_Datatype* type) {
    int bytes = 0;
    int flag = 0;
    MPI_Type_size(*type, &bytes);
    MPI_Initialized(&flag);
    check_equal(bytes, 8, "type size in an operator");
    check_equal(flag, 1, "Initialized in an operator");
    for (int i = 0; i < *count; ++i)
        static_cast<int64_t*>(inout)[i] += static_cast<int64_t*>(in)[i];
}

void operators() {
    MPI_Op op;
    MPI_Op_create(operation, 1, &op);
    for (const int elements : {1, 100, 20000}) {
        std::vector<int64_t> in(static_cast<size_t>(elements), world.rank + 1);
        std::vector<int64_t> out(in.size());
        std::vector<int64_t> later(in.size());
        MPI_Request request;
        MPI_Allreduce(in.data(), out.data(), elements, MPI_INT64_T, op, MPI_COMM_WORLD);
        MPI_Iallreduce(in.data(), later.data(), elements, MPI_INT64_T, op, MPI_COMM_WORLD,
                       &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        const int64_t sum = static_cast<int64_t>(world.size) * (world.size + 1) / 2;
        for (size_t i = 0; i < out.size(); ++i) {
            check_equal(out[i], sum, "sum by a user operator");
            check_equal(later[i], sum, "nonblocking sum by a user operator");
        }
        topic("operators").add_bytes(out.data(), out.size() * sizeof(int64_t));
    }
    MPI_Op_free(&op);
}

// ---- a thread that does something for a callback ----------------------------------------------

std::atomic<bool> asked{false}, answered{false};

void ask() {
    asked = true;
    while (!answered) usleep(50);
}

void ask_and_add(void* in, void* inout, int* count, MPI_Datatype*) {
    ask();
    for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

// Exchanges messages of `count` elements with itself; `ways` differ in how it waits.
constexpr int ways = 4;
void exchange(int count, int way) {
    const auto size = static_cast<size_t>(count);
    std::vector<int> out(size, way), in(size, -1);
    MPI_Request requests[2];
    int flag = 0;
    if (way == 0) {
        MPI_Sendrecv(out.data(), count, MPI_INT, 0, 5, in.data(), count, MPI_INT, 0, 5,
                     MPI_COMM_SELF, MPI_STATUS_IGNORE);
    } else {
        MPI_Irecv(in.data(), count, MPI_INT, 0, 5, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(out.data(), count, MPI_INT, 0, 5, MPI_COMM_SELF, &requests[1]);
        if (way == 1) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        while (way == 2 && !flag) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
        for (int i = 0; way == 3 && i < 2; ++i)
            for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
    }
    check_equal(in[size - 1], way, "message of a thread that a callback waits for");
}

// Runs `call`, whose callback may ask, beside the thread that answers.
template <class Call>
void answering(Call call) {
    for (const int count : {1, 20000})
        for (int way = 0; way < ways; ++way) {
            asked = answered = false;
            std::atomic<bool> over{false};
            std::thread answer([&] {
                while (!asked && !over) usleep(50);
                exchange(count, way);
                answered = true;
            });
            call();
            over = true;
            answer.join();
        }
}

void operators_that_wait() {
    MPI_Op op;
    MPI_Op_create(ask_and_add, 1, &op);
    answering([op] {
        int in = world.rank, sum = -1;
        MPI_Request request;
        MPI_Iallreduce(&in, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(sum, world.size * (world.size - 1) / 2, "sum by an operator that waits");
    });
    MPI_Op_free(&op);
}

int query(void*, MPI_Status* status) {
    ask();
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

void queries_that_wait() {
    answering([] {
        MPI_Request request;
        MPI_Grequest_start(
            query, [](void*) { return int{MPI_SUCCESS}; },
            [](void*, int) { return int{MPI_SUCCESS}; }, nullptr, &request);
        MPI_Grequest_complete(request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv, MPI_THREAD_MULTIPLE);
    if (world.argument == "operators-wait") {
        operators_that_wait();
    } else if (world.argument == "queries-wait") {
        queries_that_wait();
    } else {
        attributes();
        operators();
    }
    return end();
}
