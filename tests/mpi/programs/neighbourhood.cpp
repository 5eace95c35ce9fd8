// SPDX-License-Identifier: BSD-3-Clause
// Neighbourhood collectives on Cartesian and random graph topologies, in all three forms. Ints
// only.
#include <string>
#include <vector>

#include "collective.hpp"
#include "completion.hpp"
#include "topology.hpp"

using namespace battery;

namespace {

// Blocks of `count` ints to each destination; in the v and w forms every block has a gap behind it.
class Exchange {
  public:
    Exchange(const Topology& topology, int kind, int count, Form form)
        : topology_(topology),
          kind_(kind),
          count_(count),
          stride_(kind % 2 == 1 || kind == 4 ? count + 2 : count),
          form_(form),
          out_(topology.destinations.size() * static_cast<size_t>(stride_) + 1 +
               static_cast<size_t>(count)),
          in_(topology.sources.size() * static_cast<size_t>(stride_) + 1) {
        fill_places(topology.destinations.size(), &out_counts_, &out_places_, &out_bytes_);
        fill_places(topology.sources.size(), &in_counts_, &in_places_, &in_bytes_);
        types_.assign(std::max(out_counts_.size(), in_counts_.size()) + 1, MPI_INT);
    }

    void fill() {
        std::fill(in_.begin(), in_.end(), -1);
        const size_t blocks = gathers() ? 1 : topology_.destinations.size();
        for (size_t k = 0; k < blocks; ++k)
            for (int i = 0; i < count_; ++i) {
                const int to = gathers() ? 0 : topology_.destinations[k];
                out_[place(k) + static_cast<size_t>(i)] = value(world.rank, to, i);
            }
    }

    void issue() {
        const MPI_Comm comm = topology_.comm;
        const int* in_counts = in_counts_.data();
        if (kind_ == 0)
            call<MPI_Neighbor_allgather, MPI_Ineighbor_allgather, MPI_Neighbor_allgather_init>(
                form_, &request, out_.data(), count_, MPI_INT, in_.data(), count_, MPI_INT, comm);
        if (kind_ == 1)
            call<MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, MPI_Neighbor_allgatherv_init>(
                form_, &request, out_.data(), count_, MPI_INT, in_.data(), in_counts,
                in_places_.data(), MPI_INT, comm);
        if (kind_ == 2)
            call<MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, MPI_Neighbor_alltoall_init>(
                form_, &request, out_.data(), count_, MPI_INT, in_.data(), count_, MPI_INT, comm);
        if (kind_ == 3)
            call<MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, MPI_Neighbor_alltoallv_init>(
                form_, &request, out_.data(), out_counts_.data(), out_places_.data(), MPI_INT,
                in_.data(), in_counts, in_places_.data(), MPI_INT, comm);
        if (kind_ == 4)
            call<MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, MPI_Neighbor_alltoallw_init>(
                form_, &request, out_.data(), out_counts_.data(), out_bytes_.data(), types_.data(),
                in_.data(), in_counts, in_bytes_.data(), types_.data(), comm);
    }

    void judge() const {
        for (size_t k = 0; k < topology_.sources.size(); ++k)
            for (int i = 0; i < count_; ++i) {
                const int from = topology_.sources[k];
                const int expected =
                    from == MPI_PROC_NULL ? -1 : value(from, gathers() ? 0 : world.rank, i);
                check_equal(in_[place(k) + static_cast<size_t>(i)], expected,
                            "neighbour's element");
            }
        topic("kind " + std::to_string(kind_)).add_bytes(in_.data(), in_.size() * sizeof(int));
    }

    MPI_Request request = MPI_REQUEST_NULL;

  private:
    bool gathers() const { return kind_ < 2; }
    size_t place(size_t k) const { return k * static_cast<size_t>(stride_); }
    static int value(int from, int to, int i) { return from * 100000 + to * 1000 + i; }

    void fill_places(size_t partners, std::vector<int>* counts, std::vector<int>* places,
                     std::vector<MPI_Aint>* bytes) const {
        for (size_t k = 0; k < partners; ++k) {
            counts->push_back(count_);
            places->push_back(static_cast<int>(place(k)));
            bytes->push_back(static_cast<MPI_Aint>(place(k) * sizeof(int)));
        }
        counts->push_back(0);  // the vectors must not be empty
        places->push_back(0);
        bytes->push_back(0);
    }

    const Topology& topology_;
    int kind_;
    int count_;
    int stride_;
    Form form_;
    std::vector<int> out_;
    std::vector<int> in_;
    std::vector<int> out_counts_, out_places_, in_counts_, in_places_;
    std::vector<MPI_Aint> out_bytes_, in_bytes_;
    std::vector<MPI_Datatype> types_;
};

void run_blocking(const Topology& topology, Random& shared) {
    for (int kind = 0; kind < 5; ++kind) {
        Exchange exchange(topology, kind, shared.below(60), Form::blocking);
        exchange.fill();
        exchange.issue();
        exchange.judge();
    }
}

void run_nonblocking(const Topology& topology, Random& shared, Random& own) {
    std::vector<Exchange> exchanges;
    for (int i = 0; i < 8; ++i)
        exchanges.emplace_back(topology, shared.below(5), shared.below(60), Form::nonblocking);
    std::vector<MPI_Request> requests;
    for (Exchange& exchange : exchanges) {
        exchange.fill();
        exchange.issue();
        requests.push_back(exchange.request);
    }
    complete(own, requests);
    for (const Exchange& exchange : exchanges) exchange.judge();
}

void run_persistent(const Topology& topology, Random& shared) {
    Exchange exchange(topology, shared.below(5), shared.below(60), Form::persistent);
    exchange.fill();
    exchange.issue();
    for (int i = 0; i < 3; ++i) {
        exchange.fill();
        MPI_Start(&exchange.request);
        MPI_Wait(&exchange.request, MPI_STATUS_IGNORE);
        exchange.judge();
    }
    MPI_Request_free(&exchange.request);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    Random shared = common_random(7);
    Random own = own_random(7);
    for (int round = 0; round < 6; ++round) {
        Topology topology = round % 2 == 0 ? make_cart(shared) : make_graph(shared);
        run_blocking(topology, shared);
        run_nonblocking(topology, shared, own);
        run_persistent(topology, shared);
        MPI_Comm_free(&topology.comm);
    }
    return end();
}
