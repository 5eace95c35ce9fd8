// SPDX-License-Identifier: BSD-3-Clause
// The progress rule (MPI 4.0, 3.5 and 6.12): a nonblocking collective goes on while its rank waits
// in any other MPI call. Half of the ranks wait elsewhere for what the others send only when the
// collective is complete.
#include <cstdio>
#include <string>
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

enum class Collective { allreduce, bcast, reduce_scatter, allgather, number };

// One collective of each kind with a known result.
class Posted {
  public:
    Posted(Collective kind, int elements, MPI_Comm comm) : kind_(kind), elements_(elements) {
        MPI_Comm_size(comm, &size_);
        const auto all = static_cast<size_t>(elements) * static_cast<size_t>(size_);
        in_.assign(all, world.rank + 1);
        out_.assign(all, -1);
        if (kind == Collective::bcast && world.rank == 0) out_.assign(all, 7);
        const int block = elements;
        if (kind == Collective::allreduce)
            MPI_Iallreduce(in_.data(), out_.data(), block, MPI_INT, MPI_SUM, comm, &request);
        if (kind == Collective::bcast) MPI_Ibcast(out_.data(), block, MPI_INT, 0, comm, &request);
        if (kind == Collective::reduce_scatter)
            MPI_Ireduce_scatter_block(in_.data(), out_.data(), block, MPI_INT, MPI_SUM, comm,
                                      &request);
        if (kind == Collective::allgather)
            MPI_Iallgather(in_.data(), block, MPI_INT, out_.data(), block, MPI_INT, comm, &request);
    }

    void judge() const {
        const int sum = size_ * (size_ + 1) / 2;
        for (int i = 0; i < elements_; ++i) {
            if (kind_ == Collective::bcast) check_equal(out_[static_cast<size_t>(i)], 7, "bcast");
            if (kind_ == Collective::allreduce || kind_ == Collective::reduce_scatter)
                check_equal(out_[static_cast<size_t>(i)], sum, "sum");
        }
        for (int i = 0; kind_ == Collective::allgather && i < elements_ * size_; ++i)
            check_equal(out_[static_cast<size_t>(i)], i / elements_ + 1, "allgather");
    }

    MPI_Request request = MPI_REQUEST_NULL;

  private:
    Collective kind_;
    int elements_, size_ = 1;
    std::vector<int> in_, out_;
};

// Ranks in pairs: the waiting one and the one that first completes the collective.
struct Pair {
    bool waits = world.rank % 2 == 0 && world.rank + 1 < world.size;
    bool releases = world.rank % 2 == 1;
    int other = world.rank % 2 == 0 ? world.rank + 1 : world.rank - 1;
};

enum class Elsewhere {
    receive,
    probe,
    synchronous_send,
    barrier,
    make_comm,
    test_loop,
    window,
    number
};

// Before it returns, every releasing rank has completed the collective.
void wait_elsewhere(Elsewhere where, const Pair& pair, MPI_Comm other_comm, MPI_Win window) {
    int token = 1;
    if (where == Elsewhere::receive && pair.waits)
        MPI_Recv(&token, 1, MPI_INT, pair.other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (where == Elsewhere::probe && pair.waits) {
        MPI_Probe(pair.other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&token, 1, MPI_INT, pair.other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (where == Elsewhere::synchronous_send && pair.waits)
        MPI_Ssend(&token, 1, MPI_INT, pair.other, 3, MPI_COMM_WORLD);
    if (where == Elsewhere::test_loop && pair.waits) {
        MPI_Request request;
        MPI_Irecv(&token, 1, MPI_INT, pair.other, 3, MPI_COMM_WORLD, &request);
        for (int flag = 0; !flag;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
    if (where == Elsewhere::barrier) MPI_Barrier(other_comm);
    if (where == Elsewhere::window) MPI_Win_fence(0, window);
    if (where == Elsewhere::make_comm) {
        MPI_Comm made;
        MPI_Comm_dup(other_comm, &made);
        MPI_Comm_free(&made);
    }
}

void release(Elsewhere where, const Pair& pair, MPI_Comm other_comm, MPI_Win window) {
    int token = 1;
    const bool sends =
        where == Elsewhere::receive || where == Elsewhere::probe || where == Elsewhere::test_loop;
    if (sends && pair.releases) MPI_Send(&token, 1, MPI_INT, pair.other, 3, MPI_COMM_WORLD);
    if (where == Elsewhere::synchronous_send && pair.releases)
        MPI_Recv(&token, 1, MPI_INT, pair.other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!sends && where != Elsewhere::synchronous_send)
        wait_elsewhere(where, pair, other_comm, window);
}

void run_round(Random& shared, MPI_Comm comm, MPI_Comm other_comm, MPI_Win window) {
    const Pair pair;
    const auto kind = static_cast<Collective>(shared.below(static_cast<int>(Collective::number)));
    const auto where = static_cast<Elsewhere>(shared.below(static_cast<int>(Elsewhere::number)));
    const int elements = shared.chance(50) ? 1 + shared.below(100) : 20000 + shared.below(60000);
    Posted first(kind, elements, comm);
    Posted second(static_cast<Collective>(shared.below(4)), 1 + shared.below(3000), comm);
    if (pair.releases) {
        MPI_Wait(&first.request, MPI_STATUS_IGNORE);
        MPI_Wait(&second.request, MPI_STATUS_IGNORE);
        release(where, pair, other_comm, window);
    } else {
        wait_elsewhere(where, pair, other_comm, window);
        MPI_Wait(&second.request, MPI_STATUS_IGNORE);
        MPI_Wait(&first.request, MPI_STATUS_IGNORE);
    }
    first.judge();
    second.judge();
    topic("rounds").add(static_cast<uint64_t>(elements));
}

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    begin(argc, argv, world.argument == "multiple" ? MPI_THREAD_MULTIPLE : -1);
    Random shared = common_random(31);
    MPI_Comm comm, other_comm;
    MPI_Win window;
    int memory = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &other_comm);
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    // Whatever is made beside a communicator is made by a blocking collective on it.
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    check_equal(sum, world.size, "sum");
    for (int round = 0; round < 60; ++round)
        run_round(shared, round % 2 == 0 ? comm : MPI_COMM_WORLD, other_comm, window);
    MPI_Win_free(&window);
    MPI_Comm_free(&other_comm);
    MPI_Comm_free(&comm);
    return end();
}
