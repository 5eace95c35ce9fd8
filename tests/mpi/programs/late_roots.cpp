// SPDX-License-Identifier: BSD-3-Clause
// A rank calls a collective only after a message of another rank, which sends it after its own
// call. No correct program counts on that (MPI 4.0, 6.14), but plain MPICH runs it where the data
// are small, and so must we once memory of the node serves the communicator.
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

// So many calls of long data bring a communicator to the node's memory. All ranks meet then.
void use_much(MPI_Comm comm) {
    std::vector<int> in(5000), out(5000);
    for (int i = 0; i < 40; ++i) MPI_Allreduce(in.data(), out.data(), 5000, MPI_INT, MPI_MAX, comm);
}

// `late` calls last. After their calls the others tell it that it may.
template <class Call>
void call_late(int late, int tag, const Call& call) {
    int token = 0;
    if (world.rank == late)
        for (int i = 1; i < world.size; ++i)
            MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    call();
    if (world.rank != late) MPI_Send(&token, 1, MPI_INT, late, tag, MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    constexpr int count = 30;
    std::vector<int> own(count, world.rank), all(static_cast<size_t>(count * world.size), -1);
    use_much(MPI_COMM_WORLD);
    Digest& seen = topic("values");
    for (int round = 0; round < 20; ++round) {
        own[0] = round;
        call_late(0, 1, [&] {
            MPI_Gather(own.data(), count, MPI_INT, all.data(), count, MPI_INT, 0, MPI_COMM_WORLD);
        });
        call_late(0, 2, [&] {
            MPI_Reduce(own.data(), all.data(), count / 3, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        });
        call_late(world.size - 1, 3, [&] {
            MPI_Scatter(all.data(), count, MPI_INT, own.data(), count, MPI_INT, 0, MPI_COMM_WORLD);
        });
        call_late(world.size - 1, 4,
                  [&] { MPI_Bcast(own.data(), count, MPI_INT, 0, MPI_COMM_WORLD); });
        seen.add_bytes(all.data(), all.size() * sizeof(int));
    }
    return end();
}
