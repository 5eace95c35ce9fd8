// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: each thread has a communicator, with collectives, messages and communicators
// made on it.
#include <thread>
#include <vector>

#include "collective.hpp"
#include "completion.hpp"
#include "operators.hpp"

using namespace battery;

namespace {

// Random collectives, the same on all ranks' thread of this number.
void run_collectives(const Group& group, int thread, Digest* digest) {
    Random own = own_random(200 + static_cast<uint64_t>(thread));
    for (uint64_t step = 0; step < 12; ++step) {
        Random shared = group.random(9000 + static_cast<uint64_t>(thread) * 100 + step);
        const Form form = shared.chance(50) ? Form::blocking : Form::nonblocking;
        const CollectivePtr collective = random_collective(shared, own, group, form);
        collective->fill();
        collective->issue();
        std::vector<MPI_Request> requests = {collective->request};
        complete(own, requests);
        collective->judge(*digest);
    }
}

// Communicators made while other threads send.
void make_communicators(const Group& group, int thread, Digest* digest) {
    for (int round = 0; round < 3; ++round) {
        MPI_Comm copy;
        MPI_Comm half;
        MPI_Comm_dup(group.comm, &copy);
        MPI_Comm_split(group.comm, world.rank % 2, world.rank, &half);
        int sum = 0;
        const int one = thread + 1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy);
        check_equal(sum, world.size * (thread + 1), "sum on a duplicate");
        digest->add(static_cast<uint64_t>(sum));
        MPI_Barrier(half);
        MPI_Comm_free(&copy);
        MPI_Comm_free(&half);
    }
}

void send_around(const Group& group, int thread, Digest* digest) {
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    for (int round = 0; round < 60; ++round) {
        int in = -1;
        const int out = world.rank * 1000 + thread * 100 + round;
        MPI_Request request;
        MPI_Irecv(&in, 1, MPI_INT, left, round, group.comm, &request);
        MPI_Send(&out, 1, MPI_INT, right, round, group.comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(in, left * 1000 + thread * 100 + round, "element beside communicator creation");
        digest->add(static_cast<uint64_t>(in));
    }
}

using Body = void (*)(const Group&, int, Digest*);

void run(std::vector<Group>& groups, const std::vector<Body>& bodies, const char* name) {
    std::vector<Digest> digests(bodies.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < bodies.size(); ++i)
        threads.emplace_back(bodies[i], std::cref(groups[i]), static_cast<int>(i), &digests[i]);
    for (std::thread& thread : threads) thread.join();
    for (const Digest& digest : digests) topic(name).add(digest.value());
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv, MPI_THREAD_MULTIPLE);
    matrix_type();  // made before threads ask for it
    std::vector<Group> groups;
    for (int i = 0; i < 4; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        groups.push_back(describe(comm));
    }
    run(groups, std::vector<Body>(2, run_collectives), "two threads");
    run(groups, std::vector<Body>(4, run_collectives), "four threads");
    run(groups, {make_communicators, send_around, make_communicators, run_collectives}, "mixed");
    for (Group& group : groups) MPI_Comm_free(&group.comm);
    free_operator_types();
    return end();
}
