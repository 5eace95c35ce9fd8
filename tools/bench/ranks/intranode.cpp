// SPDX-License-Identifier: BSD-3-Clause
// intranode: MPI_Barrier and collectives of ranks that share a node, in streams of calls, and what
// the node can do at best, measured in the same run: two ranks that tell each other a number in a
// cache line of their own, and a copy of memory. Results are checked by allreduce.cpp.
#include <mpi.h>

#include <atomic>
#include <cstring>
#include <new>

#include "bench.hpp"
#include "record.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

constexpr double sample_ns = 50e3;  // hides how ranks leave the barrier
constexpr long most_calls = 2000, least_samples = 3, most_samples = 1000;
constexpr std::size_t copied_from = 512;  // below, the time of a copy says nothing

// Samples of what `row(count)` takes for each of `count` calls, of the slowest rank.
template <typename Row>
Samples sample(const Row& row, double seconds) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const auto each_ns = [&](long count) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now_ns();
        row(count);
        return (now_ns() - start) / static_cast<double>(count);
    };
    each_ns(10);
    const double first_ns = largest(each_ns(10));
    const long count = repetitions(first_ns, 1e-9 * sample_ns, 1, most_calls);
    const double row_ns = first_ns * static_cast<double>(count);
    std::vector<double> mine(
        static_cast<std::size_t>(repetitions(row_ns, seconds, least_samples, most_samples)));
    for (double& one : mine) one = each_ns(count);
    return slowest(mine, rank);
}

// Two lines in memory that all ranks of the node map.
class SharedLines {
  public:
    SharedLines() {
        int rank = 0, unit = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        const MPI_Aint bytes = rank == 0 ? 3 * line : 0;
        void *mine = nullptr, *first = nullptr;
        MPI_Aint size = 0;
        MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window_);
        MPI_Win_shared_query(window_, 0, &size, &unit, &first);
        auto* const aligned = reinterpret_cast<char*>(
            (reinterpret_cast<std::uintptr_t>(first) + line - 1) / line * line);
        for (int i = 0; i < 2; i++) {
            told_[i] = reinterpret_cast<std::atomic<long>*>(aligned + i * line);
            if (rank == 0) new (told_[i]) std::atomic<long>(0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~SharedLines() { MPI_Win_free(&window_); }
    SharedLines(const SharedLines&) = delete;
    SharedLines& operator=(const SharedLines&) = delete;

    void exchange(int rank, long count) {
        if (rank > 1) return;
        std::atomic<long>&mine = *told_[rank], &other = *told_[1 - rank];
        for (long i = 0; i < count; i++) {
            mine.store(++last_, std::memory_order_release);
            while (other.load(std::memory_order_acquire) < last_) {
            }
        }
    }

  private:
    static constexpr std::ptrdiff_t line = 64;
    MPI_Win window_ = MPI_WIN_NULL;
    std::atomic<long>* told_[2];
    long last_ = 0;
};

void measure_exchange(const Options& options) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    SharedLines lines;
    const auto row = [&](long count) { lines.exchange(rank, count); };
    print_figure({"exchange of two lines", 8, "ns", "lower"}, sample(row, options.seconds));
}

// Every rank copies, as every rank does in a collective.
void measure_copy(const Options& options) {
    static void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;  // a real call
    for (const std::size_t bytes : options.sizes) {
        if (bytes < copied_from) continue;
        std::vector<char> from(bytes, 'a'), to(bytes, 'b');
        const auto row = [&](long count) {
            for (long i = 0; i < count; i++) copy(to.data(), from.data(), bytes);
        };
        print_figure({"memcpy", static_cast<double>(bytes), "ns", "lower"},
                     sample(row, options.seconds));
    }
}

}  // namespace

void measure_intranode(const Options& options) {
    measure_exchange(options);
    const auto barriers = [](long count) {
        for (long i = 0; i < count; i++) MPI_Barrier(MPI_COMM_WORLD);
    };
    print_figure({"Barrier", 0, "ns", "lower"}, sample(barriers, options.seconds));
    measure_allreduce(options);
    measure_copy(options);
}

}  // namespace vecmpi::bench
