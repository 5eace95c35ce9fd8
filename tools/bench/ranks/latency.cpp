// SPDX-License-Identifier: BSD-3-Clause
// latency: blocking ping-pong between ranks 0 and 1, the round trip. Exactly two ranks take part;
// others only wait.
#include <mpi.h>

#include <cmath>

#include "bench.hpp"
#include "record.hpp"
#include "round_trips.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

constexpr double batch_ns = 50e3;  // a sample this long makes the clock's step and overhead vanish
constexpr long most_batch = 1000, least_samples = 10, most_samples = 5000;

}  // namespace

double round_trips(std::vector<char>& buffer, std::size_t bytes, int rank, long count) {
    const int length = static_cast<int>(bytes);
    const double start = now_ns();
    for (long i = 0; i < count && rank == 0; i++) {
        MPI_Send(buffer.data(), length, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer.data(), length, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (long i = 0; i < count && rank == 1; i++) {
        MPI_Recv(buffer.data(), length, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer.data(), length, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    return (now_ns() - start) / static_cast<double>(count);
}

namespace {

Samples sample_size(std::vector<char>& buffer, std::size_t bytes, int rank, double seconds) {
    round_trips(buffer, bytes, rank, 5);
    const double each_ns = round_trips(buffer, bytes, rank, 20);
    const long batch = repetitions(each_ns, 1e-9 * batch_ns, 1, most_batch);
    const double batches_ns = each_ns * static_cast<double>(batch);
    const long count = repetitions(batches_ns, seconds, least_samples, most_samples);
    Samples samples;
    for (long i = 0; i < count; i++) samples.add(round_trips(buffer, bytes, rank, batch));
    return samples;
}

}  // namespace

void measure_latency(const Options& options) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const std::size_t bytes : options.sizes) {
        std::vector<char> buffer(std::max<std::size_t>(bytes, 1));
        MPI_Barrier(MPI_COMM_WORLD);
        const Samples samples = sample_size(buffer, bytes, rank, options.seconds);
        print_figure({"round trip", static_cast<double>(bytes), "ns", "lower"}, samples);
    }
}

}  // namespace vecmpi::bench
