// SPDX-License-Identifier: BSD-3-Clause
// post: the time of a nonblocking call alone. Completion happens outside the timed region, so this
// says nothing about how long a message takes.
#include <mpi.h>

#include "bench.hpp"
#include "record.hpp"
#include "timing.hpp"
#include "work.hpp"

namespace vecmpi::bench {
namespace {

constexpr long least_samples = 20, most_samples = 5000;
constexpr int pilot_iterations = 10;

// One rank talks to itself, more ranks talk round a ring. All ranks post, rank 0's times are
// reported.
class Post {
  public:
    Post(const Options& options, std::size_t most_bytes)
        : gap_steps_(steps_for(1e3 * options.gap_us)), out_(most_bytes), in_(most_bytes) {
        int rank = 0, ranks = 1;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        next_ = (rank + 1) % ranks;
        previous_ = (rank + ranks - 1) % ranks;
    }

    // The receive is posted before the barrier, so the peer's send always finds it.
    void point_to_point(std::size_t bytes, Samples& irecv, Samples& isend) {
        const int count = static_cast<int>(bytes);
        MPI_Request requests[2];
        MPI_Barrier(MPI_COMM_WORLD);
        work(gap_steps_);
        const double start_recv = now_ns();
        MPI_Irecv(in_.data(), count, MPI_BYTE, previous_, 0, MPI_COMM_WORLD, &requests[0]);
        irecv.add(now_ns() - start_recv);
        MPI_Barrier(MPI_COMM_WORLD);
        work(gap_steps_);
        const double start_send = now_ns();
        MPI_Isend(out_.data(), count, MPI_BYTE, next_, 0, MPI_COMM_WORLD, &requests[1]);
        isend.add(now_ns() - start_send);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }

    void allreduce(std::size_t bytes, Samples& iallreduce) {
        const int count = static_cast<int>(bytes / sizeof(float));
        MPI_Request request;
        MPI_Barrier(MPI_COMM_WORLD);
        work(gap_steps_);
        const double start = now_ns();
        MPI_Iallreduce(out_.data(), in_.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &request);
        iallreduce.add(now_ns() - start);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }

  private:
    std::uint64_t gap_steps_;
    std::vector<char> out_, in_;
    int next_ = 0, previous_ = 0;
};

// Runs `iteration` as often as the budget allows, after a pilot that also warms buffers and caches.
template <typename Iteration>
void repeat(double seconds, const Iteration& iteration) {
    const double start = now_ns();
    for (int i = 0; i < pilot_iterations; i++) iteration(true);
    const double each_ns = (now_ns() - start) / pilot_iterations;
    const long count = repetitions(each_ns, seconds, least_samples, most_samples);
    for (long i = 0; i < count; i++) iteration(false);
}

}  // namespace

void measure_post(const Options& options) {
    const double overhead = clock_overhead_ns();
    std::size_t most_bytes = 8;
    for (const std::size_t bytes : options.sizes) most_bytes = std::max(most_bytes, bytes);
    Post post(options, most_bytes);
    for (const std::size_t bytes : options.sizes) {
        Samples isend, irecv, iallreduce, warm_up;
        repeat(options.seconds, [&](bool pilot) {
            post.point_to_point(bytes, pilot ? warm_up : irecv, pilot ? warm_up : isend);
        });
        repeat(options.seconds,
               [&](bool pilot) { post.allreduce(bytes, pilot ? warm_up : iallreduce); });
        const auto at = static_cast<double>(bytes);
        print_figure({"Isend", at, "ns", "lower"}, isend, overhead);
        print_figure({"Irecv", at, "ns", "lower"}, irecv, overhead);
        print_figure({"Iallreduce", at, "ns", "lower"}, iallreduce, overhead);
    }
}

}  // namespace vecmpi::bench
