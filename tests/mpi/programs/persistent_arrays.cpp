// SPDX-License-Identifier: BSD-3-Clause
// Persistent collectives whose array arguments are gone before the first start. MPICH copies them,
// and mpi4py frees the counts of MPI_Reduce_scatter_init. All that is received is known.
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

constexpr int starts = 3;

int count_of(int from, int to) { return 1 + (from + 2 * to) % 5; }
int value_of(int from, int to, int i) { return from * 10007 + to * 101 + i; }

// Ints of each rank, one block behind the other.
struct Blocks {
    std::vector<int> counts, displs, byte_displs, data;
    std::vector<MPI_Datatype> types;

    // from(b), to(b): the ranks between which block b moves.
    template <class From, class To>
    Blocks(int blocks, const From& from, const To& to) {
        for (int b = 0; b < blocks; ++b) {
            counts.push_back(count_of(from(b), to(b)));
            displs.push_back(static_cast<int>(data.size()));
            byte_displs.push_back(displs.back() * static_cast<int>(sizeof(int)));
            types.push_back(MPI_INT);
            for (int i = 0; i < counts.back(); ++i) data.push_back(value_of(from(b), to(b), i));
        }
    }
    void spoil_arrays() {
        for (std::vector<int>* const array : {&counts, &displs, &byte_displs})
            array->assign(array->size(), -1234567);
        types.assign(types.size(), MPI_DATATYPE_NULL);
    }
};

int self(int) { return world.rank; }
int each(int b) { return b; }
int nobody(int) { return 0; }

// `taken` holds what is expected; `init` makes the request.
template <class Init>
void run(const char* name, Blocks given, Blocks taken, const Init& init) {
    const std::vector<int> expected = taken.data;
    MPI_Request request;
    init(given, taken, &request);
    given.spoil_arrays();
    taken.spoil_arrays();
    for (int k = 0; k < starts; ++k) {
        taken.data.assign(taken.data.size(), -1);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(taken.data == expected, name);
        topic(name).add_bytes(taken.data.data(), taken.data.size() * sizeof(int));
    }
    MPI_Request_free(&request);
}

void vectors(MPI_Comm comm) {
    const int all = world.size, root = all - 1, at_root = world.rank == root ? all : 0;
    const auto to_root = [&](int) { return root; };
    run("Gatherv", Blocks(1, self, to_root), Blocks(at_root, each, to_root),
        [&](Blocks& given, Blocks& taken, MPI_Request* request) {
            MPI_Gatherv_init(given.data.data(), given.counts[0], MPI_INT, taken.data.data(),
                             taken.counts.data(), taken.displs.data(), MPI_INT, root, comm,
                             MPI_INFO_NULL, request);
        });
    run("Scatterv", Blocks(at_root, to_root, each), Blocks(1, to_root, self),
        [&](Blocks& given, Blocks& taken, MPI_Request* request) {
            MPI_Scatterv_init(given.data.data(), given.counts.data(), given.displs.data(), MPI_INT,
                              taken.data.data(), taken.counts[0], MPI_INT, root, comm,
                              MPI_INFO_NULL, request);
        });
    run("Allgatherv", Blocks(1, self, nobody), Blocks(all, each, nobody),
        [&](Blocks& given, Blocks& taken, MPI_Request* request) {
            MPI_Allgatherv_init(given.data.data(), given.counts[0], MPI_INT, taken.data.data(),
                                taken.counts.data(), taken.displs.data(), MPI_INT, comm,
                                MPI_INFO_NULL, request);
        });
    run("Alltoallv", Blocks(all, self, each), Blocks(all, each, self),
        [&](Blocks& given, Blocks& taken, MPI_Request* request) {
            MPI_Alltoallv_init(given.data.data(), given.counts.data(), given.displs.data(), MPI_INT,
                               taken.data.data(), taken.counts.data(), taken.displs.data(), MPI_INT,
                               comm, MPI_INFO_NULL, request);
        });
    run("Alltoallw", Blocks(all, self, each), Blocks(all, each, self),
        [&](Blocks& given, Blocks& taken, MPI_Request* request) {
            MPI_Alltoallw_init(given.data.data(), given.counts.data(), given.byte_displs.data(),
                               given.types.data(), taken.data.data(), taken.counts.data(),
                               taken.byte_displs.data(), taken.types.data(), comm, MPI_INFO_NULL,
                               request);
        });
}

// Each rank gives all ranks the same vector, so that a sum is known.
void reduce_scatter(MPI_Comm comm) {
    Blocks taken(1, nobody, self);
    for (int& value : taken.data) value *= world.size;
    run("Reduce_scatter", Blocks(world.size, nobody, each), taken,
        [&](Blocks& given, Blocks& result, MPI_Request* request) {
            MPI_Reduce_scatter_init(given.data.data(), result.data.data(), given.counts.data(),
                                    MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, request);
        });
}

void neighbours(MPI_Comm comm) {
    const int periodic = 1;
    MPI_Comm ring;
    MPI_Cart_create(comm, 1, &world.size, &periodic, 0, &ring);
    int beside[2];
    MPI_Cart_shift(ring, 0, 1, &beside[0], &beside[1]);
    const auto neighbour = [&](int b) { return beside[b]; };
    run("Neighbor_allgatherv", Blocks(1, self, nobody), Blocks(2, neighbour, nobody),
        [&](Blocks& given, Blocks& taken, MPI_Request* request) {
            MPI_Neighbor_allgatherv_init(
                given.data.data(), given.counts[0], MPI_INT, taken.data.data(), taken.counts.data(),
                taken.displs.data(), MPI_INT, ring, MPI_INFO_NULL, request);
        });
    run("Neighbor_alltoallv", Blocks(2, self, neighbour), Blocks(2, neighbour, self),
        [&](Blocks& given, Blocks& taken, MPI_Request* request) {
            MPI_Neighbor_alltoallv_init(given.data.data(), given.counts.data(), given.displs.data(),
                                        MPI_INT, taken.data.data(), taken.counts.data(),
                                        taken.displs.data(), MPI_INT, ring, MPI_INFO_NULL, request);
        });
    MPI_Comm_free(&ring);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    reduce_scatter(comm);
    vectors(comm);
    neighbours(comm);
    MPI_Comm_free(&comm);
    return end();
}
