// SPDX-License-Identifier: BSD-3-Clause
// wake: how long after the other rank's call a blocked call returns, and what CPU time the blocked
// thread takes meanwhile; beside threads of both ranks that compute all the time. Both ranks must
// run on one machine (virtual hosts too), since its clock is read on both. Two ranks.
//
//   recv     rank 1 waits in MPI_Recv
//   wait     rank 1 waits in MPI_Wait, for a receive
//   barrier  rank 1 waits in MPI_Barrier
//
// Rank 0 sleeps for the pause, reads the clock and makes its call.
#include <mpi.h>

#include <atomic>
#include <functional>
#include <map>
#include <thread>

#include "bench.hpp"
#include "record.hpp"
#include "timing.hpp"
#include "work.hpp"

namespace vecmpi::bench {
namespace {

constexpr int stamp_tag = 1, answer_tag = 2;
constexpr long least_samples = 5, most_samples = 2000;

// Threads that compute until this ends.
class Computing {
  public:
    explicit Computing(int threads) {
        const std::uint64_t steps = steps_for(1e5);
        for (int i = 0; i < threads; i++)
            threads_.emplace_back([this, steps] {
                while (!is_over_.load(std::memory_order_relaxed)) work(steps);
            });
    }
    ~Computing() {
        is_over_ = true;
        for (std::thread& thread : threads_) thread.join();
    }
    Computing(const Computing&) = delete;
    Computing& operator=(const Computing&) = delete;

  private:
    std::atomic<bool> is_over_{false};
    std::vector<std::thread> threads_;
};

void send_stamp(double stamp_ns) {
    MPI_Send(&stamp_ns, 1, MPI_DOUBLE, 1, stamp_tag, MPI_COMM_WORLD);
}
void wait_in_recv(double* stamp_ns) {
    MPI_Recv(stamp_ns, 1, MPI_DOUBLE, 0, stamp_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
void wait_in_wait(double* stamp_ns) {
    MPI_Request request;
    MPI_Irecv(stamp_ns, 1, MPI_DOUBLE, 0, stamp_tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
void enter_barrier(double) { MPI_Barrier(MPI_COMM_WORLD); }
void wait_in_barrier(double*) { MPI_Barrier(MPI_COMM_WORLD); }

struct Call {
    const char *name, *cpu_name;
    void (*wake)(double stamp_ns);
    void (*wait)(double* stamp_ns);
    bool brings_stamp;  // else a message behind it does
};
const std::map<std::string, Call>& calls() {
    static const std::map<std::string, Call> table{
        {"recv", {"recv", "recv: CPU of who waits", send_stamp, wait_in_recv, true}},
        {"wait", {"wait", "wait: CPU of who waits", send_stamp, wait_in_wait, true}},
        {"barrier",
         {"barrier", "barrier: CPU of who waits", enter_barrier, wait_in_barrier, false}},
    };
    return table;
}

void wake_other(const Call& call, double pause_us) {
    int answer;
    MPI_Recv(&answer, 1, MPI_INT, 1, answer_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(pause_us));
    const double stamp_ns = now_ns();
    call.wake(stamp_ns);
    if (!call.brings_stamp) send_stamp(stamp_ns);
}

struct Waited {
    Samples latency_ns;
    double cpu_ns = 0, wall_ns = 0;
};

void wait_for_other(const Call& call, Waited& waited) {
    const int answer = 0;
    MPI_Send(&answer, 1, MPI_INT, 0, answer_tag, MPI_COMM_WORLD);
    const double cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), begin_ns = now_ns();
    double stamp_ns = 0;
    call.wait(&stamp_ns);
    const double end_ns = now_ns();
    waited.cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    waited.wall_ns += end_ns - begin_ns;
    if (!call.brings_stamp) wait_in_recv(&stamp_ns);
    waited.latency_ns.add(end_ns - stamp_ns);
}

// Rank 0 prints what rank 1 has found.
void measure_call(const Call& call, int rank, double at, const Options& options) {
    const long count =
        repetitions(1e3 * options.gap_us, options.seconds, least_samples, most_samples);
    Waited waited;
    for (long i = 0; i < count; i++)
        if (rank == 0)
            wake_other(call, options.gap_us);
        else
            wait_for_other(call, waited);
    double found[2] = {};
    if (rank == 1) {
        found[0] = waited.latency_ns.quantile(0.5);
        found[1] = 100 * waited.cpu_ns / waited.wall_ns;
        MPI_Send(found, 2, MPI_DOUBLE, 0, stamp_tag, MPI_COMM_WORLD);
        return;
    }
    MPI_Recv(found, 2, MPI_DOUBLE, 1, stamp_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    print_figure({call.name, at, "ns", "lower"}, found[0]);
    print_figure({call.cpu_name, at, "%", "lower"}, found[1]);
}

}  // namespace

void measure_wake(const Options& options) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const int threads : options.threads) {
        const Computing beside(threads);
        for (const std::string& name : options.calls)
            measure_call(calls().at(name), rank, static_cast<double>(threads), options);
    }
}

}  // namespace vecmpi::bench
