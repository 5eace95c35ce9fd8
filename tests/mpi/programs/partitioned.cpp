// SPDX-License-Identifier: BSD-3-Clause
// Partitioned communication: Psend_init, Precv_init, Pready in its three forms, Parrived. Always
// one partner.
#include <numeric>
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

constexpr int partitions = 6;
constexpr int elements = 500;  // of one partition

int element(int rank, int repetition, int i) { return rank * 1000003 + repetition * 7919 + i; }

class Pair {
  public:
    Pair(Random& random, MPI_Comm comm)
        : random_(random),
          left_((world.rank + world.size - 1) % world.size),
          out_(partitions * elements),
          in_(partitions * elements) {
        const int right = (world.rank + 1) % world.size;
        MPI_Precv_init(in_.data(), partitions, elements, MPI_INT, left_, 3, comm, MPI_INFO_NULL,
                       &requests_[0]);
        MPI_Psend_init(out_.data(), partitions, elements, MPI_INT, right, 3, comm, MPI_INFO_NULL,
                       &requests_[1]);
    }

    ~Pair() {
        MPI_Request_free(&requests_[0]);
        MPI_Request_free(&requests_[1]);
    }

    void run(int repetition) {
        for (size_t i = 0; i < out_.size(); ++i)
            out_[i] = element(world.rank, repetition, static_cast<int>(i));
        if (random_.chance(50)) {
            MPI_Startall(2, requests_.data());
        } else {
            MPI_Start(&requests_[0]);
            MPI_Start(&requests_[1]);
        }
        make_ready();
        if (random_.chance(60)) wait_for_partition(random_.below(partitions));
        MPI_Waitall(2, requests_.data(), MPI_STATUSES_IGNORE);
        judge(repetition);
    }

  private:
    void make_ready() {
        const int way = random_.below(3);
        if (way == 0) MPI_Pready_range(0, partitions - 1, requests_[1]);
        if (way == 1) {
            int all[partitions] = {5, 0, 3, 1, 4, 2};
            MPI_Pready_list(partitions, all, requests_[1]);
        }
        if (way == 2)
            for (int i = 0; i < partitions; ++i) MPI_Pready(partitions - 1 - i, requests_[1]);
    }

    void wait_for_partition(int partition) {
        int flag = 0;
        while (!flag) MPI_Parrived(requests_[0], partition, &flag);
    }

    void judge(int repetition) {
        for (size_t i = 0; i < in_.size(); ++i)
            check_equal(in_[i], element(left_, repetition, static_cast<int>(i)),
                        "partitioned element");
        topic("partitioned").add_bytes(in_.data(), in_.size() * sizeof(int));
    }

    Random& random_;
    int left_;
    std::vector<int> out_;
    std::vector<int> in_;
    std::vector<MPI_Request> requests_ = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Random random = own_random(3);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    {
        Pair pair(random, comm);
        for (int i = 0; i < 10; ++i) pair.run(i);
    }
    MPI_Comm_free(&comm);
    return end();
}
