// SPDX-License-Identifier: BSD-3-Clause
// Comm_spawn of this program, messages and collectives to the children, merge, disconnect. Argument of a child: child.
#include <string>
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

constexpr int children = 2;

// On the merged communicator, parents first.
void use_merged(MPI_Comm inter, bool high) {
    MPI_Comm merged;
    MPI_Intercomm_merge(inter, high, &merged);
    int rank;
    int size;
    MPI_Comm_rank(merged, &rank);
    MPI_Comm_size(merged, &size);
    for (const int elements : {1, 5000}) {
        std::vector<int> in(static_cast<size_t>(elements), rank);
        std::vector<int> out(in.size(), -1);
        std::vector<int> later(in.size(), -1);
        MPI_Request request;
        MPI_Iallreduce(in.data(), later.data(), elements, MPI_INT, MPI_SUM, merged, &request);
        MPI_Allreduce(in.data(), out.data(), elements, MPI_INT, MPI_SUM, merged);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < in.size(); ++i) {
            check_equal(out[i], size * (size - 1) / 2, "sum on the merged communicator");
            check_equal(later[i], out[i], "nonblocking sum on the merged communicator");
        }
        topic("merged").add_bytes(out.data(), out.size() * sizeof(int));
    }
    MPI_Comm_free(&merged);
}

// Remote rank 0 and local rank 0 exchange, all take part in the collectives.
void use_inter(MPI_Comm inter, int peer_sum) {
    int rank;
    MPI_Comm_rank(inter, &rank);
    int in = -1;
    if (rank == 0) {
        MPI_Request request;
        MPI_Irecv(&in, 1, MPI_INT, 0, 3, inter, &request);
        const int out = 42;
        MPI_Send(&out, 1, MPI_INT, 0, 3, inter);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(in, 42, "message between parents and children");
    }
    int sum = -1;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    check_equal(sum, peer_sum, "sum of the other side");
    topic("inter").add(static_cast<uint64_t>(sum));
    MPI_Barrier(inter);
}

int sum_below(int n) { return n * (n - 1) / 2; }

int child(MPI_Comm parent) {
    int parents;
    MPI_Comm_remote_size(parent, &parents);
    use_inter(parent, sum_below(parents));
    use_merged(parent, true);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return child(parent);
    for (int round = 0; round < 2; ++round) {
        MPI_Comm inter;
        std::vector<int> codes(children, -1);
        int pending = -1;
        MPI_Request request;
        MPI_Irecv(&pending, 1, MPI_INT, world.rank, 8, MPI_COMM_WORLD, &request);
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                       codes.data());
        for (const int code : codes) check_equal(code, MPI_SUCCESS, "code of a spawned process");
        use_inter(inter, sum_below(children));
        use_merged(inter, false);
        MPI_Comm_disconnect(&inter);
        MPI_Send(&round, 1, MPI_INT, world.rank, 8, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(pending, round, "receive outstanding across Comm_spawn");
    }
    return end();
}
