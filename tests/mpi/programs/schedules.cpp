// SPDX-License-Identifier: BSD-3-Clause
// Where a collective that vecmpi carries out itself could differ from the library's: persistent
// ones started in another order on each rank, empty vectors, attributes of datatypes, operators
// that wait for another thread, refused and truncated calls, calls from callbacks. Argument: a case
// of those below.
#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

constexpr int elements = 5000;

std::vector<int> filled(int value) { return std::vector<int>(elements, value); }

int sum_of_ranks() { return world.size * (world.size + 1) / 2; }

// MPI 4.0, 6.13: once initialised they may be started in any order, another on each rank.
void persistent_in_any_order() {
    constexpr int number = 4;
    std::vector<int> in[number], out[number];
    MPI_Request requests[number];
    for (int i = 0; i < number; ++i) {
        in[i] = filled((world.rank + 1) * (i + 1));
        out[i] = filled(-1);
        MPI_Allreduce_init(in[i].data(), out[i].data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &requests[i]);
    }
    for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < number; ++i) MPI_Start(&requests[(i + world.rank + round) % number]);
        int one = 1, sum = 0;
        if (world.rank % 2 == 0) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
        if (world.rank % 2 != 0) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < number; ++i)
            for (const int value : out[i]) check_equal(value, sum_of_ranks() * (i + 1), "sum");
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
    topic("order").add(static_cast<uint64_t>(out[0][0]));
}

// More persistent ones than anything beside them has numbers for.
void many_persistent() {
    constexpr int number = 50;
    std::vector<int> in = filled(world.rank + 1), out[number];
    MPI_Request requests[number];
    for (int i = 0; i < number; ++i) {
        out[i] = filled(-1);
        MPI_Allreduce_init(in.data(), out[i].data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &requests[i]);
    }
    MPI_Startall(number, requests);
    MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < number; ++i) {
        check_equal(out[i].front(), sum_of_ranks(), "sum");
        MPI_Request_free(&requests[i]);
    }
}

// A vector that was never allocated on one rank, after a nonblocking collective.
void empty_vectors() {
    std::vector<int> in = filled(world.rank + 1), out = filled(-1);
    MPI_Request request;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Iallreduce(in.data(), out.data(), elements, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const bool none = world.rank == 0;
    MPI_Allreduce(none ? nullptr : in.data(), none ? nullptr : out.data(), 0, MPI_INT, MPI_SUM,
                  comm);
    MPI_Allreduce(in.data(), out.data(), elements, MPI_INT, MPI_SUM, comm);
    check_equal(out[7], sum_of_ranks(), "sum");
    MPI_Comm_free(&comm);
}

int type_copies = 0, type_deletes = 0;

int copy_attribute(MPI_Datatype, int, void*, void*, void*, int* flag) {
    ++type_copies;
    *flag = 1;
    return MPI_SUCCESS;
}

int delete_attribute(MPI_Datatype, int, void*, void*) {
    ++type_deletes;
    return MPI_SUCCESS;
}

// Nobody duplicates the program's datatypes.
void attributes_of_types() {
    int key;
    MPI_Type_create_keyval(copy_attribute, delete_attribute, &key, nullptr);
    MPI_Datatype type;
    MPI_Type_vector(100, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_set_attr(type, key, nullptr);
    std::vector<int> data = filled(world.rank == 0 ? 5 : -1);
    MPI_Request request;
    MPI_Bcast(data.data(), 1, type, 0, MPI_COMM_WORLD);
    MPI_Ibcast(data.data() + 1, 1, type, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_equal(type_copies + type_deletes, 0, "calls of attribute functions");
    check_equal(data[198] + data[199], 10, "broadcast");
    MPI_Type_free(&type);
    MPI_Type_free_keyval(&key);
    check_equal(type_deletes, 1, "attribute deleted with its datatype");
}

void plain_sum(void* in, void* inout, int* length, MPI_Datatype*) {
    for (int i = 0; i < *length; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

std::mutex mutex;
std::condition_variable changed;
bool wanted = false, done = false;

// Waits until the other thread has made an MPI call.
void waiting_sum(void* in, void* inout, int* length, MPI_Datatype* type) {
    {
        std::unique_lock lock(mutex);
        wanted = true;
        changed.notify_all();
        changed.wait(lock, [] { return done; });
    }
    plain_sum(in, inout, length, type);
}

void operator_waits_for_thread() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    std::thread other([comm] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [] { return wanted; });
        lock.unlock();
        int sent = 3, received = 0;
        MPI_Sendrecv(&sent, 1, MPI_INT, 0, 0, &received, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
        lock.lock();
        done = true;
        changed.notify_all();
    });
    MPI_Op op;
    MPI_Op_create(waiting_sum, 1, &op);
    std::vector<int> in = filled(world.rank + 1), out = filled(-1);
    MPI_Allreduce(in.data(), out.data(), elements, MPI_INT, op, MPI_COMM_WORLD);
    {
        const std::lock_guard lock(mutex);  // where this rank reduced nothing
        wanted = true;
        changed.notify_all();
    }
    other.join();
    check_equal(out[9], sum_of_ranks(), "sum");
    MPI_Op_free(&op);
    MPI_Comm_free(&comm);
}

// A communicator that is freed gives back what stood beside it: MPICH has numbers for 2048 of them.
void more_communicators_than_numbers() {
    constexpr int number = 2500;
    const std::vector<int> in = filled(world.rank + 1);
    std::vector<int> out;
    for (int i = 0; i < number; ++i) {
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        out = filled(-1);
        MPI_Allreduce(in.data(), out.data(), elements, MPI_INT, MPI_SUM, copy);
        check_equal(out[static_cast<size_t>(i)], sum_of_ranks(), "sum");
        MPI_Comm_free(&copy);
    }
    topic("freed").add(static_cast<uint64_t>(out[0]));
}

// A refused MPI_Comm_free changes nothing.
void refused_free() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    std::vector<int> in = filled(world.rank + 1), out = filled(-1);
    MPI_Allreduce(in.data(), out.data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm copy = MPI_COMM_WORLD;
    if (world.rank == 0) check(MPI_Comm_free(&copy) != MPI_SUCCESS, "MPI_COMM_WORLD is freed");
    MPI_Allreduce(in.data(), out.data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check_equal(out[3], sum_of_ranks(), "sum");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// A reduction with an operator of the program's waits beside the engine. What else is under way
// must go on meanwhile: 1. others wait for it before they come, 2. there is more than a
// communicator has turns for.
void operator_beside_others() {
    constexpr int number = 40, rounds = 5;
    MPI_Op op;
    MPI_Op_create(plain_sum, 1, &op);
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    std::vector<int> in = filled(world.rank + 1), out[number], sum = filled(-1);
    for (std::vector<int>& each : out) each = filled(-1);
    // Makes what nonblocking ones need.
    MPI_Allreduce(in.data(), sum.data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(in.data(), sum.data(), elements, MPI_INT, MPI_SUM, other);
    MPI_Request requests[number];
    for (int round = 0; round < rounds; ++round) {
        MPI_Iallreduce(in.data(), out[0].data(), elements, MPI_INT, MPI_SUM, other, requests);
        if (world.rank != 0) MPI_Wait(requests, MPI_STATUS_IGNORE);
        MPI_Allreduce(in.data(), sum.data(), elements, MPI_INT, op, MPI_COMM_WORLD);
        if (world.rank == 0) MPI_Wait(requests, MPI_STATUS_IGNORE);
        check_equal(out[0][round] + sum[round], 2 * sum_of_ranks(), "sum");
    }
    for (int i = 0; i < number; ++i)
        MPI_Iallreduce(in.data(), out[i].data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       &requests[i]);
    MPI_Allreduce(in.data(), sum.data(), elements, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    for (const std::vector<int>& each : out)
        check_equal(each.back() + sum.back(), 2 * sum_of_ranks(), "sum");
    MPI_Comm_free(&other);
    MPI_Op_free(&op);
}

// ---- one rank calls from a callback, its peers outside of one -----------------------------------

std::vector<int> ours, result;
MPI_Request kept = MPI_REQUEST_NULL;

void blocking_sum() {
    MPI_Allreduce(ours.data(), result.data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

void rooted_ones() {
    std::vector<int> copy = filled(world.rank == 0 ? sum_of_ranks() : -1);
    MPI_Bcast(copy.data(), elements, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Reduce(ours.data(), result.data(), elements, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    std::copy(copy.begin(), copy.end(), result.begin());
}

void nonblocking_sum() {
    MPI_Request request;
    MPI_Iallreduce(ours.data(), result.data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void nonblocking_broadcast() {
    MPI_Request request;
    std::fill(result.begin(), result.end(), world.rank == 0 ? sum_of_ranks() : -1);
    MPI_Ibcast(result.data(), elements, MPI_INT, 0, MPI_COMM_WORLD, &request);
    for (int flag = 0; flag == 0;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

void small_nonblocking_sum() {
    MPI_Request request;
    int one = 1, sum = 0;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    std::fill(result.begin(), result.end(), sum == world.size ? sum_of_ranks() : -1);
}

void persistent_sum() {
    MPI_Request request;
    MPI_Allreduce_init(ours.data(), result.data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

void persistent_sum_of_before() {
    MPI_Start(&kept);
    MPI_Wait(&kept, MPI_STATUS_IGNORE);
}

constexpr void (*calls[])() = {
    blocking_sum,          rooted_ones,    nonblocking_sum,         nonblocking_broadcast,
    small_nonblocking_sum, persistent_sum, persistent_sum_of_before};

int call_as_deleted(MPI_Comm, int, void* call, void*) {
    calls[*static_cast<int*>(call)]();
    return MPI_SUCCESS;
}

int call_as_copied(MPI_Comm, int, void*, void* call, void*, int* flag) {
    *flag = 0;
    calls[*static_cast<int*>(call)]();
    return MPI_SUCCESS;
}

int check_as_deleted(MPI_Comm self, int key, void* order, void* state) {
    for (int i = 0; i < static_cast<int>(std::size(calls)); ++i) {
        std::fill(result.begin(), result.end(), -1);
        call_as_deleted(self, key, static_cast<int*>(order) + i, state);
        for (const int value : result) check_equal(value, sum_of_ranks(), "sum");
    }
    MPI_Request_free(&kept);
    return MPI_SUCCESS;
}

// What serves a call is chosen alike on all ranks, wherever each of them calls from.
void one_rank_in_a_callback() {
    int deleted = MPI_KEYVAL_INVALID, copied = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call_as_deleted, &deleted, nullptr);
    MPI_Comm_create_keyval(call_as_copied, MPI_COMM_NULL_DELETE_FN, &copied, nullptr);
    ours = filled(world.rank + 1);
    result = filled(-1);
    blocking_sum();  // makes what nonblocking ones need
    MPI_Allreduce_init(ours.data(), result.data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &kept);
    MPI_Comm self;
    MPI_Comm_split(MPI_COMM_WORLD, world.rank, 0, &self);
    for (int round = 0; round < 10; ++round)
        for (int call = 0; call < static_cast<int>(std::size(calls)); ++call) {
            std::fill(result.begin(), result.end(), -1);
            if ((round + call) % world.size != world.rank) {
                calls[call]();
            } else if (round % 2 == 0) {
                MPI_Comm_set_attr(self, deleted, &call);
                MPI_Comm_delete_attr(self, deleted);
            } else {
                MPI_Comm copy;
                MPI_Comm_set_attr(self, copied, &call);
                MPI_Comm_dup(self, &copy);
                MPI_Comm_delete_attr(self, copied);
                MPI_Comm_free(&copy);
            }
            for (const int value : result) check_equal(value, sum_of_ranks(), "sum");
        }
    MPI_Comm_free(&self);
    MPI_Request_free(&kept);
    MPI_Comm_free_keyval(&deleted);
    MPI_Comm_free_keyval(&copied);
}

// One rank is in MPI_Finalize already.
void one_rank_in_finalize() {
    static int order[std::size(calls)];
    int deleted = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, check_as_deleted, &deleted, nullptr);
    ours = filled(world.rank + 1);
    result = filled(-1);
    blocking_sum();
    MPI_Allreduce_init(ours.data(), result.data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &kept);
    topic("done").add(1);
    print_topics();
    std::iota(order, std::end(order), 0);
    if (world.rank == world.size - 1)
        MPI_Comm_set_attr(MPI_COMM_SELF, deleted, order);
    else
        check_as_deleted(MPI_COMM_SELF, deleted, order, nullptr);
    MPI_Comm_free_keyval(&deleted);
    MPI_Finalize();
}

struct Row {
    const char* name;
    void (*run)();
};
constexpr Row rows[] = {{"order", persistent_in_any_order},
                        {"many", many_persistent},
                        {"empty", empty_vectors},
                        {"attributes", attributes_of_types},
                        {"operator", operator_waits_for_thread},
                        {"beside", operator_beside_others},
                        {"free", refused_free},
                        {"numbers", more_communicators_than_numbers},
                        {"callback", one_rank_in_a_callback}};

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv, MPI_THREAD_MULTIPLE);
    if (world.argument == "last") {
        one_rank_in_finalize();
        return 0;
    }
    for (const Row& row : rows)
        if (world.argument == row.name) {
            row.run();
            topic("done").add(1);
        }
    check(topic("done").items() == 1, "a case of this name");
    return end();
}
