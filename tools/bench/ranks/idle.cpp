// SPDX-License-Identifier: BSD-3-Clause
// idle: CPU time that threads other than the program's own use while the program computes between
// MPI calls, once with nothing pending and once with a receive pending that is matched only
// afterwards. For one rank or more.
#include <mpi.h>

#include "bench.hpp"
#include "record.hpp"
#include "timing.hpp"
#include "work.hpp"

namespace vecmpi::bench {
namespace {

struct Use {
    double others_percent;  // of one CPU
    double compute_ns;
};

Use compute(std::uint64_t steps) {
    const double process = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const double own = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const double start = now_ns();
    work(steps);
    const double wall = now_ns() - start;
    const double own_used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - own;
    const double process_used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - process;
    return {100 * (process_used - own_used) / wall, wall};
}

// A message to the next rank and back to life: wakes whatever sleeps when no request is there.
void some_traffic(int next, int previous) {
    double out = 1, in = 0;
    for (int i = 0; i < 100; i++)
        MPI_Sendrecv(&out, 1, MPI_DOUBLE, next, 0, &in, 1, MPI_DOUBLE, previous, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

void print_use(const char* percent_name, const char* time_name, const Use& use) {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const double percent = largest(use.others_percent), compute_ns = largest(use.compute_ns);
    print_figure({percent_name, static_cast<double>(ranks), "%", "lower"}, percent);
    print_figure({time_name, static_cast<double>(ranks), "ns", "lower"}, compute_ns);
}

}  // namespace

void measure_idle(const Options& options) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    const std::uint64_t steps = steps_for(1e9 * options.seconds);
    some_traffic(next, previous);
    print_use("other threads: idle", "compute: idle", compute(steps));

    double out = 1, in = 0;
    MPI_Request request;
    some_traffic(next, previous);
    MPI_Irecv(&in, 1, MPI_DOUBLE, previous, 1, MPI_COMM_WORLD, &request);
    const Use pending = compute(steps);
    MPI_Send(&out, 1, MPI_DOUBLE, next, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    print_use("other threads: receive pending", "compute: receive pending", pending);
}

}  // namespace vecmpi::bench
