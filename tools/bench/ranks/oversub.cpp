// SPDX-License-Identifier: BSD-3-Clause
// oversub: calls on more ranks than cores. Time of a call is the mean, not the median: a library
// that spins is fast or a time slice late by luck, and a program pays for both. Not for ranks with
// a core of their own.
#include <mpi.h>

#include <functional>

#include "bench.hpp"
#include "record.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

// The most calls between two looks at the clock: at 50 ms a call the budget is overrun by 3 s at
// the worst.
constexpr long most_chunk = 64;

// Mean time of a call. Rank 0 decides after each chunk whether to go on; its decision travels
// outside the timing.
double mean_call_ns(const std::function<void()>& call, double seconds) {
    double total_ns = 0;
    long calls = 0;
    call();
    for (long chunk = 1; from_rank_0(total_ns) < 1e9 * seconds;) {
        const double start = now_ns();
        for (long i = 0; i < chunk; i++) call();
        const double took_ns = now_ns() - start;
        total_ns += took_ns;
        calls += chunk;
        const bool grow = from_rank_0(took_ns) < 1e8 * seconds;
        chunk = grow ? std::min(2 * chunk, most_chunk) : chunk;
    }
    return total_ns / static_cast<double>(calls);
}

// A token of 8 bytes goes once round all ranks: one Send and one Recv on each.
void ring_lap(int rank, int ranks) {
    double token = 0;
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    if (rank == 0) MPI_Send(&token, 1, MPI_DOUBLE, next, 0, MPI_COMM_WORLD);
    MPI_Recv(&token, 1, MPI_DOUBLE, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Send(&token, 1, MPI_DOUBLE, next, 0, MPI_COMM_WORLD);
}

}  // namespace

void measure_oversub(const Options& options) {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<float> in(16 << 10), out(16 << 10);
    const auto allreduce = [&](int bytes) {
        MPI_Allreduce(in.data(), out.data(), bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    const auto print = [&](const char* name, const std::function<void()>& call) {
        const Figure figure{name, static_cast<double>(ranks), "ns", "lower"};
        print_figure(figure, mean_call_ns(call, options.seconds));
    };
    print("Allreduce 64 B", [&] { allreduce(64); });
    print("Allreduce 64 KiB", [&] { allreduce(64 << 10); });
    print("Barrier", [] { MPI_Barrier(MPI_COMM_WORLD); });
    print("ring lap 8 B", [&] { ring_lap(rank, ranks); });
}

}  // namespace vecmpi::bench
