// SPDX-License-Identifier: BSD-3-Clause
// threads: message rate of two ranks with T threads each, one sender thread facing one receiver
// thread. 8-byte messages in windows, each window answered by one small message. Needs
// MPI_THREAD_MULTIPLE.
#include <mpi.h>

#include <array>
#include <atomic>
#include <barrier>
#include <memory>
#include <thread>

#include "bench.hpp"
#include "record.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

constexpr int window = 64;
constexpr int ack_tag = 1000;
constexpr int samples_per_figure = 5;

using Message = std::uint64_t;  // 1 in the last window of a sender, else 0
using Requests = std::array<MPI_Request, window>;

struct Lane {  // what a thread pair has for itself
    MPI_Comm comm;
    int tag;
};

// Returns the number of messages sent until `deadline_ns` has passed. The last window says that it
// is the last.
long send_windows(const Lane& lane, double deadline_ns) {
    std::array<Message, window> messages{};
    Requests requests;
    long sent = 0;
    for (bool last = false; !last; sent += window) {
        last = now_ns() >= deadline_ns;
        messages.fill(last ? 1 : 0);
        for (int i = 0; i < window; i++)
            MPI_Isend(&messages[i], sizeof(Message), MPI_BYTE, 1, lane.tag, lane.comm,
                      &requests[i]);
        MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE);
        Message ack = 0;
        MPI_Recv(&ack, sizeof ack, MPI_BYTE, 1, ack_tag + lane.tag, lane.comm, MPI_STATUS_IGNORE);
    }
    return sent;
}

void receive_windows(const Lane& lane) {
    std::array<Message, window> messages{};
    Requests requests;
    while (messages[0] == 0) {
        for (int i = 0; i < window; i++)
            MPI_Irecv(&messages[i], sizeof(Message), MPI_BYTE, 0, lane.tag, lane.comm,
                      &requests[i]);
        MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE);
        const Message ack = 1;
        MPI_Send(&ack, sizeof ack, MPI_BYTE, 0, ack_tag + lane.tag, lane.comm);
    }
}

// Million messages a second, by rank 0's clock from the moment when all threads stand ready until
// the last is done.
double message_rate(const std::vector<Lane>& lanes, int rank, double seconds) {
    std::atomic<long> messages{0};
    double deadline_ns = 0;  // written before the barrier, read after it
    std::barrier ready(static_cast<std::ptrdiff_t>(lanes.size()) + 1);
    std::vector<std::thread> threads;
    for (const Lane& lane : lanes)
        threads.emplace_back([&, lane] {
            ready.arrive_and_wait();
            if (rank == 0)
                messages.fetch_add(send_windows(lane, deadline_ns), std::memory_order_relaxed);
            else
                receive_windows(lane);
        });
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    deadline_ns = start + 1e9 * seconds;
    ready.arrive_and_wait();
    for (std::thread& thread : threads) thread.join();
    return 1e3 * static_cast<double>(messages.load()) / (now_ns() - start);
}

std::vector<Lane> make_lanes(int threads, bool separate_comms) {
    std::vector<Lane> lanes;
    for (int t = 0; t < threads; t++) {
        Lane lane{MPI_COMM_WORLD, separate_comms ? 0 : t};
        if (separate_comms) MPI_Comm_dup(MPI_COMM_WORLD, &lane.comm);
        lanes.push_back(lane);
    }
    return lanes;
}

}  // namespace

void require_thread_multiple() {
    int rank = 0, provided = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Query_thread(&provided);
    if (provided == MPI_THREAD_MULTIPLE) return;
    if (rank == 0) std::fputs("vecmpi-bench-ranks: no MPI_THREAD_MULTIPLE here\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void measure_threads(const Options& options) {
    require_thread_multiple();
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const int threads : options.threads) {
        std::vector<Lane> lanes = make_lanes(threads, options.separate_comms);
        Samples rates;
        message_rate(lanes, rank, options.seconds / 10);  // warm-up
        for (int i = 0; i < samples_per_figure; i++)
            rates.add(message_rate(lanes, rank, options.seconds / samples_per_figure));
        print_figure({"messages", static_cast<double>(threads), "M/s", "higher"}, rates);
        for (Lane& lane : lanes)
            if (options.separate_comms) MPI_Comm_free(&lane.comm);
    }
}

}  // namespace vecmpi::bench
