// SPDX-License-Identifier: BSD-3-Clause
// The nouns of vecmpi-bench-ranks and the list of its measurements. This is an ordinary MPI
// program: it must not know of vecmpi, so that the same binary measures the plain library and the
// preloaded one.
//
// record: one figure of one run, a JSON line from rank 0; vecmpi-bench takes medians over runs.
// sample: one timed repetition inside a run.
// budget: the seconds that one figure may take.
// work: a fixed amount of computation; its duration is not fixed, so that a stolen CPU shows.
// midmean: mean of the middle half of the samples: robust as the median, finer than the clock.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace vecmpi::bench {

enum class Pin {
    none,     // leave the ranks where the system puts them
    process,  // before MPI_Init: every thread of the rank shares one CPU
    main      // after MPI_Init: the calling thread has one CPU, other threads keep the rank's mask
};

struct Options {
    std::string measurement;
    Pin pin = Pin::none;
    std::vector<int> cpus{0};           // rank r is pinned to cpus[r % cpus.size()]
    std::vector<std::size_t> sizes{8};  // applications: 0 to 2, small to large
    std::vector<std::string> ops;
    std::vector<std::string> types;  // reduce, reductions: names of the table of types;
                                     // pack: groups of layouts; applications: layouts
    std::vector<std::string> calls;  // reductions, allreduce, wake; everyday: patterns;
                                     // applications: lifetimes
    bool multiple = false;           // everyday, training: MPI_THREAD_MULTIPLE, not SINGLE
    long count_calls = 0;            // reductions: make each call so often and time nothing
    std::vector<int> threads{1};     // a rank; training, wake: those that compute
    bool separate_comms = false;     // threads: a communicator per thread pair instead of a tag
    double seconds = 0.1;            // budget of one figure; for idle the length of the computation
    bool nonblocking = false;        // allreduce: the I-form of each call and a wait
    std::size_t drain_bytes = 0;     // allreduce: moved over a link untimed before each sample
    std::string form = "blocking";   // collectives: or nonblocking, persistent
    bool in_place = false;           // collectives
    bool random = false;             // reduce: numbers drawn at random where the op compares them
    long tests = 0;                  // overlap: looks at the requests during the computation
    double gap_us = 0;               // post: computation between two iterations; wake: the pause
    long buckets = 20;               // training: Allreduces a step, of sizes[0] bytes each
    double compute_ms = 600;         // training: what a thread computes in a step
    long steps = 3;                  // training: samples
    unsigned limit_s = 300;  // the rank ends itself after this long, whatever happens to mpirun
};

// Fills `options` from `MEASUREMENT [--name value]...`; returns an error text, empty when all is
// well.
std::string parse_options(int argc, char** argv, Options& options);

// What MPI_Init cost, taken before the program calls anything else.
struct StartCost {
    double init_ms;
    long rss_kib_before, rss_kib, peak_kib;
    int threads;
};

// One function per measurement, called by all ranks between MPI_Init and MPI_Finalize.
void measure_post(const Options& options);
void measure_latency(const Options& options);
void measure_everyday(const Options& options);
void measure_overlap(const Options& options);
void measure_threads(const Options& options);
void measure_oversub(const Options& options);
void measure_footprint(const StartCost& cost);
void measure_idle(const Options& options);
void measure_reduce(const Options& options);
void measure_reductions(const Options& options);
void measure_allreduce(const Options& options);
void measure_collectives(const Options& options);
void measure_intranode(const Options& options);
void measure_network(const Options& options);
void measure_pack(const Options& options);
void measure_messages(const Options& options);
void measure_applications(const Options& options);
void measure_training(const Options& options);
void measure_wake(const Options& options);

// Ends the job where the library has no MPI_THREAD_MULTIPLE.
void require_thread_multiple();

// What two CPUs take to tell each other a number and back, as a record; no MPI call in here.
void print_exchange(const Options& options);

// The tables of ops and types that `reduce` and `reductions` know, as records; no MPI call in here.
void print_op_table();

// The collectives that `collectives` knows, as records; no MPI call in here.
void print_collective_calls();

// The part of footprint that can only be seen after MPI_Finalize. No MPI call in here.
void measure_footprint_end(double finalize_ms);

}  // namespace vecmpi::bench
