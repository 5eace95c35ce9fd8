// SPDX-License-Identifier: BSD-3-Clause
// Communicators made and freed between posted collectives: the order on each communicator must be
// kept.
#include <array>
#include <deque>
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

struct Pending {
    std::vector<int64_t> in;
    std::vector<int64_t> out;
    int64_t factor = 0;  // of rank + 1, summed over the communicator
    int64_t ranks = 0;
};

class Order {
  public:
    explicit Order(Random& own) : own_(own) {}

    void post(MPI_Comm comm, int elements) {
        Pending& pending = pending_.emplace_back();
        int rank;
        int size;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        pending.factor = ++posted_;
        pending.ranks = size;
        pending.in.assign(static_cast<size_t>(elements), (rank + 1) * pending.factor);
        pending.out.assign(static_cast<size_t>(elements), -1);
        MPI_Iallreduce(pending.in.data(), pending.out.data(), elements, MPI_INT64_T, MPI_SUM, comm,
                       &requests_.emplace_back());
    }

    void finish() {
        complete(own_, requests_);
        for (const Pending& pending : pending_) {
            const int64_t sum = pending.factor * pending.ranks * (pending.ranks + 1) / 2;
            for (const int64_t value : pending.out) check_equal(value, sum, "sum");
            topic("sums").add_bytes(pending.out.data(), pending.out.size() * sizeof(int64_t));
        }
        requests_.clear();
        pending_.clear();
    }

  private:
    Random& own_;
    int64_t posted_ = 0;
    std::vector<MPI_Request> requests_;
    std::deque<Pending> pending_;
};

MPI_Comm make(int way, MPI_Comm parent) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request;
    MPI_Group group;
    if (way == 0) MPI_Comm_dup(parent, &comm);
    if (way == 1) MPI_Comm_split(parent, 0, -world.rank, &comm);
    if (way == 2) MPI_Comm_split(parent, world.rank % 2, 0, &comm);
    if (way == 3) {
        MPI_Comm_group(parent, &group);
        MPI_Comm_create(parent, group, &comm);
        MPI_Group_free(&group);
    }
    if (way == 4) {
        MPI_Comm_idup(parent, &comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (way == 5) MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    if (way == 6) MPI_Comm_dup_with_info(parent, MPI_INFO_NULL, &comm);
    return comm;
}

// Iallreduces posted before, between and after; communicators freed while theirs are outstanding.
void run_round(Random& shared, Random& own) {
    Order order(own);
    std::vector<MPI_Comm> comms = {MPI_COMM_WORLD};
    for (int step = 0; step < 12; ++step) {
        const auto at = static_cast<size_t>(shared.below(static_cast<int>(comms.size())));
        for (int i = shared.below(3); i >= 0; --i)
            order.post(comms[at], shared.chance(20) ? 20000 : shared.below(50));
        if (comms.size() < 5) comms.push_back(make(shared.below(7), MPI_COMM_WORLD));
        order.post(comms.back(), 3);
        if (comms.size() > 3 && shared.chance(50)) {
            MPI_Comm_free(&comms[1]);
            comms.erase(comms.begin() + 1);
        }
        int64_t one = 1;
        int64_t sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        check_equal(sum, world.size, "blocking sum amid nonblocking ones");
    }
    while (comms.size() > 1) {
        MPI_Comm_free(&comms.back());
        comms.pop_back();
    }
    order.finish();
}

// A receive posted before a communicator is made and matched after.
void receives_across(MPI_Comm comm) {
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    int in = -1;
    MPI_Request request;
    MPI_Irecv(&in, 1, MPI_INT, left, 4, comm, &request);
    MPI_Comm other = make(0, MPI_COMM_WORLD);
    MPI_Send(&world.rank, 1, MPI_INT, right, 4, comm);
    MPI_Comm_free(&other);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_equal(in, left, "received across Comm_dup");
}

// The communicator of an outstanding receive is freed; the receive still completes.
void free_with_receive() {
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    MPI_Comm comm = make(0, MPI_COMM_WORLD);
    int in = -1;
    std::array<MPI_Request, 2> requests;
    MPI_Irecv(&in, 1, MPI_INT, left, 4, comm, &requests[0]);
    MPI_Isend(&world.rank, 1, MPI_INT, right, 4, comm, &requests[1]);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    check_equal(in, left, "received on a freed communicator");
    topic("freed").add(static_cast<uint64_t>(in));
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Random shared = common_random(8);
    Random own = own_random(8);
    for (int round = 0; round < 5; ++round) {
        run_round(shared, own);
        receives_across(MPI_COMM_WORLD);
        free_with_receive();
    }
    return end();
}
