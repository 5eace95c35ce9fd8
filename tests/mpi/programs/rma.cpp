// SPDX-License-Identifier: BSD-3-Clause
// One-sided communication with receives and collectives outstanding around it. Integers only.
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

constexpr int width = 64;  // ints that each rank exposes to each other

int right() { return (world.rank + 1) % world.size; }
int left() { return (world.rank + world.size - 1) % world.size; }

// Posted before and completed after what is done between.
class Outstanding {
  public:
    explicit Outstanding(MPI_Comm comm) : comm_(comm) {
        MPI_Irecv(&received_, 1, MPI_INT, left(), 44, comm, &requests_[0]);
        MPI_Iallreduce(&world.rank, &sum_, 1, MPI_INT, MPI_SUM, comm, &requests_[1]);
    }
    void finish() {
        MPI_Send(&world.rank, 1, MPI_INT, right(), 44, comm_);
        MPI_Waitall(2, requests_, MPI_STATUSES_IGNORE);
        check_equal(received_, left(), "receive outstanding across RMA");
        check_equal(sum_, world.size * (world.size - 1) / 2, "sum outstanding across RMA");
    }

  private:
    MPI_Comm comm_;
    int received_ = -1;
    int sum_ = -1;
    MPI_Request requests_[2];
};

void fence(MPI_Comm comm) {
    const auto ranks = static_cast<size_t>(world.size);
    std::vector<int> exposed(ranks * width, -1);
    std::vector<int> mine(width);
    std::vector<int> fetched(width, -1);
    for (int i = 0; i < width; ++i) mine[static_cast<size_t>(i)] = world.rank * 100 + i;
    Outstanding outstanding(comm);
    MPI_Win win;
    MPI_Win_create(exposed.data(), static_cast<MPI_Aint>(exposed.size() * sizeof(int)), sizeof(int),
                   MPI_INFO_NULL, comm, &win);
    MPI_Win_fence(0, win);
    for (int to = 0; to < world.size; ++to)
        MPI_Put(mine.data(), width, MPI_INT, to, world.rank * width, width, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Get(fetched.data(), width, MPI_INT, right(), left() * width, width, MPI_INT, win);
    MPI_Win_fence(0, win);
    outstanding.finish();
    for (int from = 0; from < world.size; ++from)
        for (int i = 0; i < width; ++i)
            check_equal(exposed[static_cast<size_t>(from * width + i)], from * 100 + i,
                        "put element");
    for (int i = 0; i < width; ++i)
        check_equal(fetched[static_cast<size_t>(i)], left() * 100 + i, "got element");
    MPI_Win_free(&win);
    topic("fence").add_bytes(exposed.data(), exposed.size() * sizeof(int));
}

void accumulate(MPI_Comm comm) {
    alignas(16) int counter[2] = {0, 0};
    MPI_Win win;
    MPI_Win_create(counter, sizeof counter, sizeof(int), MPI_INFO_NULL, comm, &win);
    Outstanding outstanding(comm);
    const int one = world.rank + 1;
    for (int round = 0; round < 5; ++round) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_flush(0, win);
        int before = -1;
        MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 1, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        check(before >= 0, "Fetch_and_op");
    }
    outstanding.finish();
    MPI_Barrier(comm);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    int found[2] = {-1, -1};
    MPI_Get(found, 2, MPI_INT, 0, 0, 2, MPI_INT, win);
    MPI_Win_unlock(0, win);
    const int sum = 5 * world.size * (world.size + 1) / 2;
    check_equal(found[0], sum, "accumulated sum");
    check_equal(found[1], sum, "fetched and added sum");
    topic("accumulate").add_bytes(found, sizeof found);
    MPI_Win_free(&win);
}

// Request-based operations beside messages in one Waitall.
void requests(MPI_Comm comm, Random& own) {
    std::vector<int> exposed(width, world.rank);
    std::vector<int> fetched(width, -1);
    const std::vector<int> mine(width, 500 + world.rank);
    int in = -1;
    MPI_Win win;
    MPI_Win_create(exposed.data(), width * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &win);
    MPI_Win_lock_all(0, win);
    std::vector<MPI_Request> pending(3);
    MPI_Irecv(&in, 1, MPI_INT, left(), 45, comm, &pending[0]);
    MPI_Rget(fetched.data(), width, MPI_INT, right(), 0, width, MPI_INT, win, &pending[1]);
    MPI_Isend(&world.rank, 1, MPI_INT, right(), 45, comm, &pending[2]);
    complete(own, pending);
    check_equal(in, left(), "message beside Rget");
    for (const int value : fetched) check_equal(value, right(), "element of Rget");
    MPI_Barrier(comm);
    MPI_Request put;
    MPI_Rput(mine.data(), width, MPI_INT, right(), 0, width, MPI_INT, win, &put);
    MPI_Wait(&put, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Barrier(comm);
    MPI_Win_fence(0, win);
    for (const int value : exposed) check_equal(value, 500 + left(), "element of Rput");
    MPI_Win_free(&win);
    topic("requests").add_bytes(fetched.data(), fetched.size() * sizeof(int));
}

// Post, start, complete, wait around the ring.
void active_target(MPI_Comm comm) {
    // MPICH 4.0.2 loses puts to a window that does not begin at a multiple of 8 bytes.
    alignas(16) int exposed[4] = {-1, -1, -1, -1};
    MPI_Win win;
    MPI_Group all;
    MPI_Group to;
    MPI_Group from;
    const int right_rank = right();
    const int left_rank = left();
    MPI_Win_create(exposed, sizeof exposed, sizeof(int), MPI_INFO_NULL, comm, &win);
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, 1, &right_rank, &to);
    MPI_Group_incl(all, 1, &left_rank, &from);
    Outstanding outstanding(comm);
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    MPI_Put(&world.rank, 1, MPI_INT, right_rank, 0, 1, MPI_INT, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    outstanding.finish();
    check_equal(exposed[0], left_rank, "put of the left");
    topic("active").add(static_cast<uint64_t>(exposed[0]));
    for (MPI_Group* group : {&all, &to, &from}) MPI_Group_free(group);
    MPI_Win_free(&win);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Random own = own_random(10);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int round = 0; round < 3; ++round) {
        fence(comm);
        accumulate(comm);
        requests(comm, own);
        active_target(comm);
    }
    MPI_Comm_free(&comm);
    return end();
}
