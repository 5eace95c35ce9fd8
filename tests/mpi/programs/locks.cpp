// SPDX-License-Identifier: BSD-3-Clause
// A lock of the program that its operator takes, held around MPI calls as an interpreter holds its own. It is given
// away only in calls that wait, so no other call may wait for the operator.
#include <unistd.h>

#include <mutex>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

constexpr int count = 50000;
constexpr int rounds = 20;

std::recursive_mutex interpreter;

void add(void* in, void* inout, int* length, MPI_Datatype*) {
    const std::lock_guard lock(interpreter);
    for (int i = 0; i < *length; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

void wait_for(MPI_Request* request) {
    interpreter.unlock();
    MPI_Wait(request, MPI_STATUS_IGNORE);
    interpreter.lock();
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv, MPI_THREAD_MULTIPLE);
    std::vector<int> in[2];
    std::vector<int> out(count);
    for (std::vector<int>& result : in) result.resize(count);
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    interpreter.lock();
    for (int round = 0; round < rounds; ++round) {
        out[count - 1] = world.rank + round;
        MPI_Request requests[2];
        for (int i = 0; i < 2; ++i) {
            MPI_Iallreduce(out.data(), in[i].data(), count, MPI_INT, op, MPI_COMM_WORLD, &requests[i]);
            usleep(1000);  // time for the operator to ask for the lock on another thread
        }
        MPI_Datatype pair;
        MPI_Type_contiguous(2, MPI_INT, &pair);
        MPI_Type_free(&pair);
        for (int i = 0; i < 2; ++i) {
            wait_for(&requests[i]);
            check_equal(in[i][count - 1], world.size * (world.size - 1) / 2 + world.size * round,
                        "sum");
            topic("sum").add(static_cast<uint64_t>(in[i][count - 1]));
        }
    }
    interpreter.unlock();
    MPI_Op_free(&op);
    return end();
}
