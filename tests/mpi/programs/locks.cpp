// SPDX-License-Identifier: BSD-3-Clause
// A lock of the program that its operator takes, held around MPI calls as an interpreter holds its
// own. It is given away only in calls that wait, so no other call may wait for the operator.
#include <unistd.h>

#include <array>
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

// Receives of messages that nobody sends, or sends later.
struct Receives {
    int value = 0;
    int started = 0;
    std::vector<int> values = std::vector<int>(count);
    MPI_Request few, many, persistent;
    Receives() {
        MPI_Irecv(&value, 1, MPI_INT, world.rank, 1, MPI_COMM_WORLD, &few);
        MPI_Irecv(values.data(), count, MPI_INT, world.rank, 2, MPI_COMM_WORLD, &many);
        MPI_Recv_init(&started, 1, MPI_INT, world.rank, 3, MPI_COMM_WORLD, &persistent);
    }
    void cancel(MPI_Request* request) {
        if (*request == MPI_REQUEST_NULL) return;
        MPI_Cancel(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    // One call that does not wait, whatever the operator does.
    void look(int which) {
        std::array<MPI_Request, 2> both{few, many};
        int flag = 0, index = 0, indices[2];
        MPI_Status statuses[2];
        switch (which) {
            case 0:
                MPI_Test(&few, &flag, statuses);
                break;
            case 1:
                MPI_Test(&many, &flag, statuses);
                break;
            case 2:
                MPI_Testall(2, both.data(), &flag, statuses);
                break;
            case 3:
                MPI_Testany(2, both.data(), &index, &flag, statuses);
                break;
            case 4:
                MPI_Testsome(2, both.data(), &flag, indices, statuses);
                break;
            case 5:
                MPI_Request_get_status(many, &flag, statuses);
                break;
            case 6:
                MPI_Cancel(&many);
                break;
            case 7:
                MPI_Request_free(&persistent);
                break;
            case 8: {  // of an active one: it goes on
                MPI_Request_free(&many);
                MPI_Send(values.data(), 0, MPI_INT, world.rank, 2, MPI_COMM_WORLD);
                break;
            }
            case 9: {
                MPI_Start(&persistent);
                MPI_Send(&value, 1, MPI_INT, world.rank, 3, MPI_COMM_WORLD);
                break;
            }
        }
        check_equal(flag, 0, "nothing is complete");
        if (which == 6) MPI_Wait(&many, MPI_STATUS_IGNORE);
        if (which == 9) MPI_Wait(&persistent, MPI_STATUS_IGNORE);
        cancel(&few);
        cancel(&many);
        if (persistent != MPI_REQUEST_NULL) MPI_Request_free(&persistent);
    }
};

void look_beside(MPI_Op op) {
    std::vector<int> out(count, 1);
    std::vector<int> in(count);
    for (int which = 0; which < 10; ++which) {
        Receives receives;
        MPI_Request request;
        usleep(1000);  // time for the offload thread, if there is one, to issue them
        MPI_Iallreduce(out.data(), in.data(), count, MPI_INT, op, MPI_COMM_WORLD, &request);
        usleep(1000);
        receives.look(which);
        wait_for(&request);
        check_equal(in[count - 1], world.size, "sum beside other calls");
    }
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
            MPI_Iallreduce(out.data(), in[i].data(), count, MPI_INT, op, MPI_COMM_WORLD,
                           &requests[i]);
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
    look_beside(op);
    interpreter.unlock();
    MPI_Op_free(&op);
    return end();
}
