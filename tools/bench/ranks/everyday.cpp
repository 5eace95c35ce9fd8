// SPDX-License-Identifier: BSD-3-Clause
// everyday: what programs call all day, between two ranks, in one or more threads. A cell is a
// pattern with a size. Times are rank 0's. Results are not checked here.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "bench.hpp"
#include "machine.hpp"
#include "record.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

constexpr int window = 64, few = 16;  // messages before an answer; of the loops over requests
constexpr int answer_tag = 1000;
constexpr double most_samples = 8;

// What a thread of rank 0 and one of rank 1 share.
struct Pair {
    MPI_Comm comm = MPI_COMM_WORLD;
    int rank = 0, other = 1;
    int bytes = 0;
    std::vector<char> out, in;
    std::array<MPI_Request, window> requests{};
    MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;  // persistent

    bool leads() const { return rank == 0; }
    void send() { MPI_Send(out.data(), bytes, MPI_BYTE, other, 0, comm); }
    void receive() { MPI_Recv(in.data(), bytes, MPI_BYTE, other, 0, comm, MPI_STATUS_IGNORE); }
    // Rank 0 waits until rank 1 has come so far.
    void answer() {
        char none = 0;
        if (leads())
            MPI_Recv(&none, 1, MPI_BYTE, other, answer_tag, comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(&none, 1, MPI_BYTE, other, answer_tag, comm);
    }
    void post(int count) {
        for (int i = 0; i < count; i++) {
            MPI_Request& request = requests[static_cast<std::size_t>(i)];
            if (leads())
                MPI_Isend(out.data(), bytes, MPI_BYTE, other, 0, comm, &request);
            else
                MPI_Irecv(in.data(), bytes, MPI_BYTE, other, 0, comm, &request);
        }
    }
};

// ---- patterns: one unit, ended by an answer where rank 0 would run ahead
// --------------------------

void ping_pong(Pair& pair) {
    if (pair.leads()) pair.send();
    pair.receive();
    if (!pair.leads()) pair.send();
}

void isend_window(Pair& pair) {
    pair.post(window);
    MPI_Waitall(window, pair.requests.data(), MPI_STATUSES_IGNORE);
    pair.answer();
}

void send_stream(Pair& pair) {
    for (int i = 0; i < window; i++) pair.leads() ? pair.send() : pair.receive();
    pair.answer();
}

void sendrecv(Pair& pair) {
    MPI_Sendrecv(pair.out.data(), pair.bytes, MPI_BYTE, pair.other, 0, pair.in.data(), pair.bytes,
                 MPI_BYTE, pair.other, 0, pair.comm, MPI_STATUS_IGNORE);
}

void probe_and_receive(Pair& pair) {
    if (pair.leads()) pair.send();
    MPI_Status status;
    int count = 0;
    MPI_Probe(pair.other, 0, pair.comm, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_Recv(pair.in.data(), count, MPI_BYTE, pair.other, 0, pair.comm, MPI_STATUS_IGNORE);
    if (!pair.leads()) pair.send();
}

void waitany_loop(Pair& pair) {
    pair.post(few);
    for (int i = 0; i < few; i++) {
        int index = 0;
        MPI_Waitany(few, pair.requests.data(), &index, MPI_STATUS_IGNORE);
    }
    pair.answer();
}

void waitsome_loop(Pair& pair) {
    pair.post(few);
    for (int done = 0; done < few;) {
        int found = 0;
        std::array<int, few> indices;
        MPI_Waitsome(few, pair.requests.data(), &found, indices.data(), MPI_STATUSES_IGNORE);
        done += found;
    }
    pair.answer();
}

void start_and_wait(Pair& pair) {
    const auto run = [](MPI_Request& request) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    };
    if (pair.leads()) run(pair.sending);
    run(pair.receiving);
    if (!pair.leads()) run(pair.sending);
}

void scatter(Pair& pair) {
    for (int i = 0; i < few; i++)
        MPI_Scatter(pair.out.data(), pair.bytes, MPI_BYTE, pair.in.data(), pair.bytes, MPI_BYTE, 0,
                    pair.comm);
    pair.answer();
}

void gather(Pair& pair) {
    for (int i = 0; i < few; i++)
        MPI_Gather(pair.out.data(), pair.bytes, MPI_BYTE, pair.in.data(), pair.bytes, MPI_BYTE, 0,
                   pair.comm);
    pair.answer();
}

void scan(Pair& pair) {
    for (int i = 0; i < few; i++)
        MPI_Scan(pair.out.data(), pair.in.data(), pair.bytes, MPI_CHAR, MPI_SUM, pair.comm);
    pair.answer();
}

void alltoall(Pair& pair) {
    for (int i = 0; i < few; i++)
        MPI_Alltoall(pair.out.data(), pair.bytes, MPI_BYTE, pair.in.data(), pair.bytes, MPI_BYTE,
                     pair.comm);
}

struct Pattern {
    const char* name;
    void (*unit)(Pair& pair);
    int calls;  // a unit has: its time is divided by them
};
constexpr Pattern patterns[] = {
    {"ping-pong", ping_pong, 1},
    {"window", isend_window, window},
    {"stream", send_stream, window},
    {"sendrecv", sendrecv, 1},
    {"probe", probe_and_receive, 1},
    {"waitany", waitany_loop, few},
    {"waitsome", waitsome_loop, few},
    {"start", start_and_wait, 1},
    {"scatter", scatter, few},
    {"gather", gather, few},
    {"scan", scan, few},
    {"alltoall", alltoall, few},
};

// ---- cells
// ----------------------------------------------------------------------------------------

std::vector<Pair> make_pairs(int threads, int rank) {
    std::vector<Pair> pairs(static_cast<std::size_t>(threads));
    for (Pair& pair : pairs) {
        pair.rank = rank;
        pair.other = 1 - rank;
        if (threads > 1) MPI_Comm_dup(MPI_COMM_WORLD, &pair.comm);
    }
    return pairs;
}

void begin_size(Pair& pair, std::size_t bytes) {
    pair.bytes = static_cast<int>(bytes);
    pair.out = std::vector<char>(2 * bytes, 'a');
    pair.in = std::vector<char>(2 * bytes, 'b');
    MPI_Send_init(pair.out.data(), pair.bytes, MPI_BYTE, pair.other, 0, pair.comm, &pair.sending);
    MPI_Recv_init(pair.in.data(), pair.bytes, MPI_BYTE, pair.other, 0, pair.comm, &pair.receiving);
}

void end_size(Pair& pair) {
    MPI_Request_free(&pair.sending);
    MPI_Request_free(&pair.receiving);
}

// Time until each pair has run the pattern `units` times, in threads where there are several pairs.
double run_units(std::vector<Pair>& pairs, const Pattern& pattern, long units) {
    if (pairs.size() == 1) {
        const double start = now_ns();
        for (long i = 0; i < units; i++) pattern.unit(pairs[0]);
        return now_ns() - start;
    }
    std::barrier ready(static_cast<std::ptrdiff_t>(pairs.size()) + 1);
    std::vector<std::thread> threads;
    for (Pair& pair : pairs)
        threads.emplace_back([&] {
            ready.arrive_and_wait();
            for (long i = 0; i < units; i++) pattern.unit(pair);
        });
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    ready.arrive_and_wait();
    for (std::thread& thread : threads) thread.join();
    return now_ns() - start;
}

// Long runs are repeated: the first ones may set something up. Would they end the search, a sample
// had few units, and be the time in which threads begin and end.
double settled_time(std::vector<Pair>& pairs, const Pattern& pattern, long units,
                    double long_from_ns) {
    constexpr int runs = 4;
    double least_ns = std::numeric_limits<double>::max();
    for (int i = 0; i < runs && least_ns >= long_from_ns; i++)
        least_ns = std::min(least_ns, from_rank_0(run_units(pairs, pattern, units)));
    return least_ns;
}

void measure_cell(std::vector<Pair>& pairs, const Pattern& pattern, std::size_t bytes,
                  const std::string& name, double seconds) {
    const double sample_ns = 1e9 * seconds / most_samples;
    long units = 1;
    double took_ns = settled_time(pairs, pattern, units, sample_ns);
    while (took_ns < sample_ns) {
        units *= took_ns < sample_ns / 8 ? 4 : 2;
        took_ns = settled_time(pairs, pattern, units, sample_ns);
    }
    const long count = repetitions(took_ns, seconds, 2, most_samples);
    Samples samples;
    for (long i = 0; i < count; i++) samples.add(run_units(pairs, pattern, units));
    const double calls =
        static_cast<double>(units) * pattern.calls * static_cast<double>(pairs.size());
    print_figure({name.c_str(), static_cast<double>(bytes), "ns", "lower"},
                 samples.quantile(0.5) / calls);
}

std::string group_name(const Options& options, int threads) {
    if (!options.multiple) return "SINGLE";
    return "MULTIPLE " + std::to_string(threads);
}

bool is_chosen(const Options& options, const Pattern& pattern) {
    for (const std::string& call : options.calls)
        if (call == pattern.name) return true;
    return false;
}

}  // namespace

void measure_everyday(const Options& options) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const int threads : options.threads) {
        std::vector<Pair> pairs = make_pairs(threads, rank);
        for (const std::size_t bytes : options.sizes) {
            for (Pair& pair : pairs) begin_size(pair, bytes);
            for (const Pattern& pattern : patterns)
                if (is_chosen(options, pattern))
                    measure_cell(pairs, pattern, bytes,
                                 group_name(options, threads) + " " + pattern.name,
                                 options.seconds);
            for (Pair& pair : pairs) end_size(pair);
        }
        for (Pair& pair : pairs)
            if (threads > 1) MPI_Comm_free(&pair.comm);
    }
}

// Two threads on the first two CPUs tell each other a number, each in a line of its own. One CPU
// has no such time: no record.
void print_exchange(const Options& options) {
    struct alignas(64) Told {
        std::atomic<long> number{0};
    };
    static Told told[2];
    if (options.cpus.size() < 2) return;
    std::atomic<bool> stop{false};
    std::thread other([&] {
        if (!pin_this_thread(options.cpus[1])) std::perror("vecmpi-bench-ranks");
        for (long next = 1; !stop.load(std::memory_order_relaxed);)
            if (told[0].number.load(std::memory_order_acquire) == next)
                told[1].number.store(next++, std::memory_order_release);
    });
    if (!pin_this_thread(options.cpus[0])) std::perror("vecmpi-bench-ranks");
    long number = 0;
    const auto exchange = [&] {
        told[0].number.store(++number, std::memory_order_release);
        while (told[1].number.load(std::memory_order_acquire) != number) {
        }
    };
    for (int i = 0; i < 1000; i++) exchange();
    const Samples samples = sample_batches(exchange, options.seconds, 8);
    stop.store(true, std::memory_order_relaxed);
    other.join();
    JsonLine("exchange").number("ns", samples.quantile(0.5)).print();
}

}  // namespace vecmpi::bench
