// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: several threads look at one request at once. MPI_Parrived, each for its own
// partition, and MPI_Request_get_status, which both leave the request as it is. An operator of the
// program comes first: from then on each thread asks for its requests by itself.
#include <barrier>
#include <thread>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

constexpr int threads = 3;
constexpr int elements = 2000;  // of a thread

int right() { return (world.rank + 1) % world.size; }
int left() { return (world.rank + world.size - 1) % world.size; }
int element(int rank, int round, int i) { return rank * 1000003 + round * 7919 + i; }

template <class Body>
void run_threads(Body body) {
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) all.emplace_back(body, i);
    for (std::thread& thread : all) thread.join();
}

void reduce_by_an_operator() {
    MPI_Op op;
    const auto add = [](void* in, void* inout, int* count, MPI_Datatype*) {
        for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
    };
    MPI_Op_create(add, 1, &op);
    int one = 1, sum = 0;
    MPI_Request request;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Op_free(&op);
    check_equal(sum, world.size, "sum by an operator of the program");
}

void partitions(MPI_Comm comm, int rounds) {
    std::vector<int> in(threads * elements), out(threads * elements);
    MPI_Request receive, send;
    MPI_Precv_init(in.data(), threads, elements, MPI_INT, left(), 1, comm, MPI_INFO_NULL, &receive);
    MPI_Psend_init(out.data(), threads, elements, MPI_INT, right(), 1, comm, MPI_INFO_NULL, &send);
    std::barrier together(threads);
    run_threads([&](int thread) {
        const int first = thread * elements, end = first + elements;
        for (int round = 0; round < rounds; ++round) {
            if (thread == 0) {
                MPI_Start(&receive);
                MPI_Start(&send);
            }
            together.arrive_and_wait();
            for (int i = first; i < end; ++i) out[i] = element(world.rank, round, i);
            MPI_Pready(thread, send);
            for (int flag = 0; !flag;) MPI_Parrived(receive, thread, &flag);
            for (int i = first; i < end; ++i)
                check_equal(in[i], element(left(), round, i), "element of a thread's partition");
            together.arrive_and_wait();
            if (thread != 0) continue;
            MPI_Wait(&send, MPI_STATUS_IGNORE);
            MPI_Wait(&receive, MPI_STATUS_IGNORE);
            topic("partitions").add_bytes(in.data(), in.size() * sizeof(int));
        }
    });
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
}

void statuses(MPI_Comm comm, int rounds) {
    std::vector<int> in(50000), out(50000);
    MPI_Request receive;
    std::barrier together(threads);
    run_threads([&](int thread) {
        for (int round = 0; round < rounds; ++round) {
            const int count = round % 2 == 0 ? 500 : 50000;
            if (thread == 0) MPI_Irecv(in.data(), count, MPI_INT, left(), round, comm, &receive);
            together.arrive_and_wait();
            if (thread == 1) MPI_Send(out.data(), count, MPI_INT, right(), round, comm);
            MPI_Status status;
            for (int flag = 0; !flag;) MPI_Request_get_status(receive, &flag, &status);
            check_equal(status.MPI_TAG, round, "tag");
            check_equal(status.MPI_SOURCE, left(), "source");
            together.arrive_and_wait();
            if (thread == 0) MPI_Wait(&receive, MPI_STATUS_IGNORE);
        }
    });
    topic("statuses").add(static_cast<uint64_t>(rounds));
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv, MPI_THREAD_MULTIPLE);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    reduce_by_an_operator();
    partitions(comm, 20);
    statuses(comm, 50);
    MPI_Comm_free(&comm);
    return end();
}
