// SPDX-License-Identifier: BSD-3-Clause
// vecmpi-bench-team: barrier and reduction of a team of threads, by the method of the EPCC OpenMP
// micro-benchmarks (Bull, EWOMP 1999): what a construct adds to a loop of delays. Plain it measures
// the OpenMP runtime that it is linked to; where libvecmpi_team.so is preloaded, vecmpi/team.h.
// One process; MPI only for the frame that it shares with vecmpi-bench-ranks.
#include <dlfcn.h>
#include <mpi.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench.hpp"
#include "machine.hpp"
#include "record.hpp"
#include "timing.hpp"
#include "vecmpi/team.h"

namespace vecmpi::bench {
namespace {

// Functions of vecmpi/team.h; null where the library is not preloaded.
template <class Function>
Function* find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}
const auto team_create = find<decltype(vecmpi_team_create)>("vecmpi_team_create");
const auto team_free = find<decltype(vecmpi_team_free)>("vecmpi_team_free");
const auto team_barrier = find<decltype(vecmpi_team_barrier)>("vecmpi_team_barrier");
const auto team_allreduce = find<decltype(vecmpi_team_allreduce)>("vecmpi_team_allreduce");

constexpr int delay_steps = 100;     // some 50 ns, as a thread that has something to do
constexpr double sample_ns = 500e3;  // what begins and ends a parallel region is nothing then
constexpr long most_samples = 1000, least_samples = 3;
constexpr int most_doubles = 7;

void delay() {
    for (int i = 0; i < delay_steps; i++) asm volatile("" ::: "memory");
}

// What thread `thread` does `times` times.
using Loop = std::function<void(int thread, long times)>;

double run_ns(int threads, const Loop& loop, long times) {
    const double start = now_ns();
#pragma omp parallel num_threads(threads)
    loop(omp_get_thread_num(), times);
    return now_ns() - start;
}

const Loop& reference() {
    static const Loop loop = [](int, long times) {
        for (long i = 0; i < times; i++) delay();
    };
    return loop;
}

void measure(const char* name, int threads, const Loop& loop, const Options& options) {
    long times = 16;
    double each_ns = run_ns(threads, loop, times) / static_cast<double>(times);
    for (; each_ns * static_cast<double>(times) < sample_ns;
         each_ns = run_ns(threads, loop, times) / static_cast<double>(times))
        times *= 2;
    const auto per_run = static_cast<double>(times);
    const auto fit = static_cast<long>(1e9 * options.seconds / (each_ns * per_run));
    Samples samples;
    for (long i = 0; i < std::clamp(fit, least_samples, most_samples); i++) {
        const double alone = run_ns(threads, reference(), times);
        samples.add((run_ns(threads, loop, times) - alone) / per_run);
    }
    print_figure({name, static_cast<double>(threads), "ns", "lower"}, samples);
}

// The floor: two CPUs tell each other a number, each in a line of its own.
Loop exchange() {
    struct alignas(64) Told {
        std::atomic<long> number{0};
    };
    static Told told[2];
    return [](int thread, long times) {
        if (thread > 1) return;
        std::atomic<long>&mine = told[thread].number, &other = told[1 - thread].number;
        const long first = mine.load(std::memory_order_relaxed) + 1;
        for (long i = first; i < first + times; i++) {
            delay();
            mine.store(i, std::memory_order_release);
            while (other.load(std::memory_order_acquire) < i) {
            }
        }
    };
}

Loop openmp_barrier() {
    return [](int, long times) {
        for (long i = 0; i < times; i++) {
            delay();
#pragma omp barrier
        }
    };
}

// The worksharing loop has one iteration a thread and ends with a barrier, after which all threads
// have the sums. One double as OpenMP programs write it, several as an array section.
Loop openmp_sum(int doubles) {
    static double one, several[most_doubles];
    if (doubles == 1)
        return [](int, long times) {
            const int threads = omp_get_num_threads();
            for (long i = 0; i < times; i++) {
#pragma omp for schedule(static) reduction(+ : one)
                for (int t = 0; t < threads; t++) {
                    delay();
                    one += 1;
                }
            }
        };
    return [doubles](int, long times) {
        const int threads = omp_get_num_threads();
        for (long i = 0; i < times; i++) {
#pragma omp for schedule(static) reduction(+ : several[:doubles])
            for (int t = 0; t < threads; t++) {
                delay();
                for (int d = 0; d < doubles; d++) several[d] += 1;
            }
        }
    };
}

Loop barrier_of(vecmpi_team* team) {
    return [team](int thread, long times) {
        for (long i = 0; i < times; i++) {
            delay();
            team_barrier(team, thread);
        }
    };
}

Loop sum_of(vecmpi_team* team, int doubles) {
    return [team, doubles](int thread, long times) {
        for (long i = 0; i < times; i++) {
            delay();
            double sums[most_doubles];
            for (int d = 0; d < doubles; d++) sums[d] = 1;
            team_allreduce(team, thread, sums, doubles, VECMPI_TEAM_DOUBLE, VECMPI_TEAM_SUM);
            if (sums[doubles - 1] == omp_get_num_threads()) continue;
            std::fprintf(stderr, "vecmpi-bench-team: wrong sum\n");
            std::abort();
        }
    };
}

void measure_team(int threads, const Options& options) {
    vecmpi_team* const team = team_create ? team_create(threads) : nullptr;
    if (threads > 1) measure("exchange of two lines", threads, exchange(), options);
    measure("barrier", threads, team ? barrier_of(team) : openmp_barrier(), options);
    struct Row {
        const char* name;
        int doubles;
    };
    for (const Row row : {Row{"sum 1 double", 1}, Row{"sum 3 doubles", 3}, Row{"sum 7 doubles", 7}})
        measure(row.name, threads, team ? sum_of(team, row.doubles) : openmp_sum(row.doubles),
                options);
    if (team) team_free(team);
}

void pin_threads(int threads, const Options& options) {
    if (options.pin == Pin::none) return;
#pragma omp parallel num_threads(threads)
    pin_this_thread(
        options.cpus[static_cast<std::size_t>(omp_get_thread_num()) % options.cpus.size()]);
}

void print_header(const Options& options) {
    char host[33] = {};
    gethostname(host, sizeof host - 1);
    const std::string place = std::string(host) + ":" + read_threads().front().cpus;
    JsonLine line("header");
    line.text("measurement", options.measurement).number("ranks", 1);
    line.number("clock_overhead_ns", clock_overhead_ns()).text("mpi", "no MPI call is measured");
    line.text("preload", mapped_preload()).raw("places", json_list({place})).print();
}

}  // namespace
}  // namespace vecmpi::bench

int main(int argc, char** argv) {
    using namespace vecmpi::bench;
    Options options;
    const std::string error = parse_options(argc, argv, options);
    if (!error.empty()) {
        std::fprintf(stderr, "vecmpi-bench-team: %s\n", error.c_str());
        return 2;
    }
    alarm(options.limit_s);
    MPI_Init(nullptr, nullptr);
    pin_threads(*std::max_element(options.threads.begin(), options.threads.end()), options);
    print_header(options);
    for (const int threads : options.threads) measure_team(threads, options);
    print_threads();
    MPI_Finalize();
    return 0;
}
