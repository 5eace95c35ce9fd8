// SPDX-License-Identifier: BSD-3-Clause
// Ranks that make the same small collective by unlike arguments: in place, by another type of the
// same values, from no memory or by absolute addresses, or with a collective under way on a
// communicator of some of them. What a rank finds
// out from its own arguments must not lead it elsewhere than the others.
#include <algorithm>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

constexpr int calls = 60;  // more than bring a communicator to any memory

void every(int so_many, int i, MPI_Comm comm) {
    if (i % so_many == 0) MPI_Barrier(comm);
}

void in_place(MPI_Comm comm) {
    std::vector<int> all(static_cast<size_t>(world.size));
    for (int i = 0; i < calls; ++i) {
        int own = -1;
        for (int rank = 0; rank < world.size; ++rank) all[static_cast<size_t>(rank)] = i + rank;
        if (world.rank == 0)
            MPI_Scatter(all.data(), 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, comm);
        else
            MPI_Scatter(nullptr, 0, MPI_INT, &own, 1, MPI_INT, 0, comm);
        if (world.rank != 0) check_equal(own, i + world.rank, "Scatter in place");
        own = i + world.rank;
        if (world.rank == 0) {
            std::fill(all.begin() + 1, all.end(), -1);
            MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, all.data(), 1, MPI_INT, 0, comm);
            for (int rank = 0; rank < world.size; ++rank)
                check_equal(all[static_cast<size_t>(rank)], i + rank, "Gather in place");
        } else {
            MPI_Gather(&own, 1, MPI_INT, nullptr, 0, MPI_INT, 0, comm);
        }
        every(7, i, comm);
    }
}

void by_another_type(MPI_Comm comm) {
    MPI_Datatype spread;
    MPI_Type_vector(2, 1, 2, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    for (int i = 0; i < calls; ++i) {
        int data[3] = {i, -1, i + 1};
        if (world.rank == 0) {
            MPI_Bcast(data, 1, spread, 0, comm);
        } else {
            data[0] = data[1] = -1;
            MPI_Bcast(data, 2, MPI_INT, 0, comm);
            check(data[0] == i && data[1] == i + 1, "Bcast by unlike types");
        }
        every(11, i, comm);
    }
    MPI_Type_free(&spread);
}

// The root gives itself more than it takes, which it alone can know. It gets an error, and the
// others get what is theirs. (MPI 4.0, 6.5 and 6.6: both must be equal.)
void with_two_minds(MPI_Comm comm) {
    constexpr int given = 10;
    const auto ranks = static_cast<size_t>(world.size);
    std::vector<int> block(given, world.rank), all(given * ranks, -1);
    MPI_Errhandler before;
    MPI_Comm_get_errhandler(comm, &before);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < calls; ++i) {
        const int error = MPI_Gather(block.data(), given, MPI_INT, all.data(), 1, MPI_INT, 0, comm);
        check((error != MPI_SUCCESS) == (world.rank == 0), "Gather of more than the root takes");
        MPI_Barrier(comm);
        MPI_Gather(block.data(), given, MPI_INT, all.data(), given, MPI_INT, 0, comm);
        if (world.rank == 0)
            for (size_t rank = 0; rank < ranks; ++rank)
                check_equal(all[given * rank], static_cast<int>(rank), "Gather after the error");
        std::vector<int> own(given, -1);
        const int taken = world.rank == 0 ? 1 : given;
        const int of_root =
            MPI_Scatter(all.data(), given, MPI_INT, own.data(), taken, MPI_INT, 0, comm);
        check((of_root != MPI_SUCCESS) == (world.rank == 0), "Scatter of more than the root takes");
        if (world.rank != 0) check_equal(own[given - 1], world.rank, "Scatter with an error");
    }
    MPI_Comm_set_errhandler(comm, before);
    MPI_Errhandler_free(&before);
}

// The last rank has no data and no memory, as an empty std::vector.
void from_nowhere(MPI_Comm comm) {
    const auto ranks = static_cast<size_t>(world.size);
    const bool has_none = world.rank == world.size - 1;
    constexpr int length = 3000;
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    std::vector<int> counts(ranks, length), places(ranks), ones(ranks, 1), nowhere(ranks);
    counts.back() = 0;
    for (size_t rank = 0; rank < ranks; ++rank) places[rank] = static_cast<int>(rank) * length;
    // Other arrays on each side: the library tests whether they are the same ones.
    const std::vector<int> other_ones = ones, other_places = nowhere;
    const std::vector<MPI_Datatype> types(ranks, empty), other_types = types;
    std::vector<int> own(length, world.rank), all(ranks * length);
    int given[2] = {}, taken[2] = {};
    for (int i = 0; i < calls; ++i) {
        MPI_Alltoallw(has_none ? nullptr : given, ones.data(), nowhere.data(), types.data(),
                      has_none ? nullptr : taken, other_ones.data(), other_places.data(),
                      other_types.data(), comm);
        std::fill(all.begin(), all.end(), -1);
        MPI_Allgatherv(has_none ? nullptr : own.data(), has_none ? 1 : length,
                       has_none ? empty : MPI_INT, all.data(), counts.data(), places.data(),
                       MPI_INT, comm);
        for (size_t rank = 0; rank + 1 < ranks; ++rank)
            check_equal(all[rank * length + length - 1], static_cast<int>(rank),
                        "Allgatherv from nowhere");
        every(13, i, comm);
    }
    MPI_Type_free(&empty);
}

// Rank 0 says where its blocks are from MPI_BOTTOM on.
void by_addresses(MPI_Comm comm) {
    constexpr int length = 500;
    const auto ranks = static_cast<size_t>(world.size);
    std::vector<int> all(length * ranks), own(length);
    const std::vector<MPI_Count> counts(ranks, MPI_Count{length} * MPI_Count{sizeof(int)});
    std::vector<MPI_Aint> from_start(ranks), from_bottom(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) {
        from_start[rank] = static_cast<MPI_Aint>(rank) * counts[rank];
        MPI_Get_address(&all[rank * length], &from_bottom[rank]);
    }
    void* const start = world.rank == 0 ? MPI_BOTTOM : static_cast<void*>(all.data());
    const MPI_Aint* const places = world.rank == 0 ? from_bottom.data() : from_start.data();
    for (int i = 0; i < calls; ++i) {
        std::fill(own.begin(), own.end(), i + world.rank);
        MPI_Gatherv_c(own.data(), counts[0], MPI_BYTE, start, counts.data(), places, MPI_BYTE, 0,
                      comm);
        const auto look = [&](const char* what) {
            for (size_t rank = 0; rank < ranks; ++rank)
                check_equal(all[length * (rank + 1) - 1], i + static_cast<int>(rank), what);
        };
        if (world.rank == 0) look("Gatherv by addresses");
        std::fill(own.begin(), own.end(), -1);
        MPI_Scatterv_c(start, counts.data(), places, MPI_BYTE, own.data(), counts[0], MPI_BYTE, 0,
                       comm);
        check_equal(own[length - 1], i + world.rank, "Scatterv by addresses");
        every(13, i, comm);
        if (world.size == 1) continue;  // MPICH 4.0.2 ignores the displacement then
        std::fill(all.begin(), all.end(), -1);
        MPI_Allgatherv_c(own.data(), counts[0], MPI_BYTE, start, counts.data(), places, MPI_BYTE,
                         comm);
        look("Allgatherv by addresses");
    }
}

// The ranks of `some`, which the others do not know, have reason to make a communicator.
void beside_others(MPI_Comm comm, MPI_Comm some) {
    constexpr int many = 1 << 18;
    std::vector<int> in(many, 1), out(many);
    MPI_Request request = MPI_REQUEST_NULL;
    if (some != MPI_COMM_NULL)
        MPI_Iallreduce(in.data(), out.data(), many, MPI_INT, MPI_SUM, some, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < calls; ++i) {
        int from_first = world.rank == 0 ? i : -1, sum = 0;
        MPI_Bcast(&from_first, 1, MPI_INT, 0, comm);
        check_equal(from_first, i, "Bcast");
        MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comm);
        check_equal(sum, i * world.size, "Allreduce");
        every(5, i, comm);
    }
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm copy, some;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, world.rank < 2 ? 0 : MPI_UNDEFINED, 0, &some);
    for (MPI_Comm comm : {MPI_COMM_WORLD, copy}) {
        in_place(comm);
        by_another_type(comm);
        with_two_minds(comm);
        from_nowhere(comm);
        by_addresses(comm);
        beside_others(comm, some);
    }
    if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
    MPI_Comm_free(&copy);
    return end();
}
