// SPDX-License-Identifier: BSD-3-Clause
// network: the constants by which costs of collectives are reckoned, between ranks 0 and 1: latency
// (half a round trip), bandwidth one way and both ways, and what a message costs its sender or its
// receiver, whichever takes longer. Ranks from 2 on sleep, so that they take no CPU from the two.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>

#include "bench.hpp"
#include "record.hpp"
#include "round_trips.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

constexpr std::size_t small_bytes = 8;
constexpr int large_window = 4, small_window = 1000;  // messages before an answer
constexpr long trips = 20;                            // in a sample of the latency
constexpr long least_samples = 3, most_samples = 500;

// One window of messages from the ranks that send to the other, and 8 bytes that say that all have
// come. Both ranks return the time.
class Stream {
  public:
    Stream(int rank, std::size_t bytes, int window, bool both_ways)
        : rank_(rank),
          peer_(1 - rank),
          bytes_(static_cast<int>(bytes)),
          window_(window),
          sends_(both_ways || rank == 0),
          receives_(both_ways || rank == 1),
          out_(bytes),
          in_(bytes * static_cast<std::size_t>(window)) {}

    double window_ns() {
        exchange_answers();  // also lets both begin together
        const double start = now_ns();
        for (int i = 0; i < window_; i++) post(i);
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
        exchange_answers();
        return now_ns() - start;
    }

  private:
    void post(int i) {
        const auto offset = static_cast<std::size_t>(i) * out_.size();
        if (receives_)
            MPI_Irecv(&in_[offset], bytes_, MPI_BYTE, peer_, 0, MPI_COMM_WORLD, add_request());
        if (sends_)
            MPI_Isend(out_.data(), bytes_, MPI_BYTE, peer_, 0, MPI_COMM_WORLD, add_request());
    }
    MPI_Request* add_request() { return &requests_.emplace_back(MPI_REQUEST_NULL); }
    void exchange_answers() {
        double mine = 0, theirs = 0;
        MPI_Sendrecv(&mine, 1, MPI_DOUBLE, peer_, 1, &theirs, 1, MPI_DOUBLE, peer_, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

    int rank_, peer_, bytes_, window_;
    bool sends_, receives_;
    std::vector<char> out_, in_;
    std::vector<MPI_Request> requests_;
};

// Rank 0 decides how many samples fill the time; the other follows.
long agreed_samples(int rank, double each_ns, double seconds) {
    const double fit = 1e9 * seconds / std::max(each_ns, 1.0);
    long count = std::clamp(static_cast<long>(fit), least_samples, most_samples);
    if (rank == 0) MPI_Send(&count, 1, MPI_LONG, 1, 2, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&count, 1, MPI_LONG, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return count;
}

// Each sample goes through `of_window_ns` on its way to a figure. The untimed windows use up what a
// rate limiter lets through at once.
template <typename OfWindow>
Samples sample_stream(Stream stream, int rank, double seconds, OfWindow of_window_ns) {
    stream.window_ns();
    const long count = agreed_samples(rank, stream.window_ns(), seconds);
    Samples samples;
    for (long i = 0; i < count; i++) samples.add(of_window_ns(stream.window_ns()));
    return samples;
}

// Half round trips.
Samples sample_latency(int rank, double seconds) {
    std::vector<char> buffer(small_bytes);
    round_trips(buffer, small_bytes, rank, 5);
    const double each_ns = trips * round_trips(buffer, small_bytes, rank, trips);
    const long count = agreed_samples(rank, each_ns, seconds);
    Samples samples;
    for (long i = 0; i < count; i++) samples.add(round_trips(buffer, small_bytes, rank, trips) / 2);
    return samples;
}

void measure_pair(int rank, std::size_t large, double seconds) {
    const auto at_small = static_cast<double>(small_bytes), at_large = static_cast<double>(large);
    const auto mbit = [&](double ns) { return 8e3 * at_large * large_window / ns; };
    print_figure({"latency", at_small, "ns", "lower"}, sample_latency(rank, seconds));
    print_figure({"bandwidth one way", at_large, "Mbit/s", "higher"},
                 sample_stream({rank, large, large_window, false}, rank, seconds, mbit));
    print_figure({"bandwidth both ways", at_large, "Mbit/s", "higher"},
                 sample_stream({rank, large, large_window, true}, rank, seconds, mbit));
    print_figure({"overhead of a message", at_small, "ns", "lower"},
                 sample_stream({rank, small_bytes, small_window, false}, rank, seconds,
                               [](double ns) { return ns / small_window; }));
}

// A barrier whose waiting ranks sleep.
void sleepy_barrier() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done) usleep(1000);
    }
}

}  // namespace

void measure_network(const Options& options) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank < 2) measure_pair(rank, options.sizes.front(), options.seconds);
    sleepy_barrier();
}

}  // namespace vecmpi::bench
