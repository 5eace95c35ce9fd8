// SPDX-License-Identifier: BSD-3-Clause
// overlap: how much of a communication runs while the program computes. The computation is a fixed
// amount of work, so CPU time that a progress thread takes from it lowers the result.
//
//   comm = post, wait
//   both = post, work, wait
//   comp = the work alone
//   overlap = 100 * (comm + comp - both) / min(comm, comp), within 0 and 100
//
// Each is the time of the slowest rank. The work is chosen so that comp is about comm. The three
// are measured in turn, so slow drift touches all alike.
#include <mpi.h>

#include <algorithm>
#include <functional>
#include <map>

#include "bench.hpp"
#include "record.hpp"
#include "timing.hpp"
#include "work.hpp"

namespace vecmpi::bench {
namespace {

constexpr int pilot_iterations = 5;
constexpr long least_samples = 5, most_samples = 500;

struct Buffers {
    std::vector<char> out, in;
    int rank, ranks;
    MPI_Datatype spaced;  // of every second double, as many as are in a message
};

using Requests = std::vector<MPI_Request>;
using Start = std::function<void(Buffers&, int bytes, Requests&)>;

void start_ring(Buffers& b, int count, MPI_Datatype type, Requests& requests) {
    const int next = (b.rank + 1) % b.ranks, previous = (b.rank + b.ranks - 1) % b.ranks;
    requests.resize(2);
    MPI_Irecv(b.in.data(), count, type, previous, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(b.out.data(), count, type, next, 0, MPI_COMM_WORLD, &requests[1]);
}

void start_exchange(Buffers& b, int bytes, Requests& requests) {
    start_ring(b, bytes, MPI_BYTE, requests);
}

void start_spaced(Buffers& b, int, Requests& requests) { start_ring(b, 1, b.spaced, requests); }

void start_allreduce(Buffers& b, int bytes, Requests& requests) {
    const int count = bytes / static_cast<int>(sizeof(float));
    requests.resize(1);
    MPI_Iallreduce(b.out.data(), b.in.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                   &requests[0]);
}

void start_bcast(Buffers& b, int bytes, Requests& requests) {
    requests.resize(1);
    MPI_Ibcast(b.out.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[0]);
}

// `bytes` is the whole send buffer of a rank: each peer gets its share.
void start_alltoall(Buffers& b, int bytes, Requests& requests) {
    const int share = bytes / b.ranks;
    requests.resize(1);
    MPI_Ialltoall(b.out.data(), share, MPI_BYTE, b.in.data(), share, MPI_BYTE, MPI_COMM_WORLD,
                  &requests[0]);
}

const std::map<std::string, std::pair<const char*, Start>>& operations() {
    static const std::map<std::string, std::pair<const char*, Start>> table{
        {"p2p", {"Isend/Irecv", start_exchange}},
        {"vector", {"Isend/Irecv of a vector", start_spaced}},
        {"iallreduce", {"Iallreduce", start_allreduce}},
        {"ibcast", {"Ibcast", start_bcast}},
        {"ialltoall", {"Ialltoall", start_alltoall}},
    };
    return table;
}

struct Work {
    std::uint64_t steps = 0;
    std::uint64_t tests = 0;  // looks at the requests, spread over the steps
};

// The first parts are a step longer where the steps cannot be divided.
void compute(const Work& job, Requests& requests) {
    const std::uint64_t parts = job.tests + 1;
    for (std::uint64_t part = 0; part < parts; part++) {
        int done = 0;
        if (part > 0)
            MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                        MPI_STATUSES_IGNORE);
        work(job.steps / parts + (part < job.steps % parts ? 1 : 0));
    }
}

// The slowest rank's time for communication (if `start` is given), work (if any), or both together.
double span_ns(const Start* start, const Work& job, Buffers& buffers, int bytes) {
    static Requests requests;
    requests.clear();
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now_ns();
    if (start != nullptr) (*start)(buffers, bytes, requests);
    if (job.steps > 0) compute(job, requests);
    if (start != nullptr)
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    return largest(now_ns() - begin);
}

struct Spans {
    Samples comm, comp, both;
};

// The median of a few spans, the same on all ranks.
double pilot_ns(const Start* start, const Work& job, Buffers& buffers, int bytes) {
    Samples pilot;
    for (int i = 0; i < pilot_iterations; i++) span_ns(start, job, buffers, bytes);  // warm-up
    for (int i = 0; i < pilot_iterations; i++) pilot.add(span_ns(start, job, buffers, bytes));
    return from_rank_0(pilot.quantile(0.5));
}

// 1. How long is the communication? 2. As much work, corrected by what the work takes here when all
// ranks compute.
// 3. The three spans in turn until the budget is used.
Spans sample_spans(const Start& start, Buffers& buffers, int bytes, const Options& options) {
    const Work none;
    Work job{0, static_cast<std::uint64_t>(options.tests)};
    const double comm_ns = pilot_ns(&start, none, buffers, bytes);
    job.steps = std::max<std::uint64_t>(steps_for(comm_ns), 1);
    const double comp_ns = pilot_ns(nullptr, job, buffers, bytes);
    job.steps = static_cast<std::uint64_t>(
        std::max(static_cast<double>(job.steps) * comm_ns / comp_ns, 1.0));
    const long count = repetitions(4 * comm_ns, options.seconds, least_samples, most_samples);
    Spans spans;
    for (long i = 0; i < count; i++) {
        spans.comm.add(span_ns(&start, none, buffers, bytes));
        spans.comp.add(span_ns(nullptr, job, buffers, bytes));
        spans.both.add(span_ns(&start, job, buffers, bytes));
    }
    return spans;
}

void print_overlap(const char* name, int bytes, const Spans& spans) {
    const double comm = spans.comm.midmean(), comp = spans.comp.midmean();
    const double both = spans.both.midmean();
    const double hidden = 100 * (comm + comp - both) / std::min(comm, comp);
    char detail[160];
    std::snprintf(detail, sizeof detail, "{\"comm_ns\":%.0f,\"comp_ns\":%.0f,\"both_ns\":%.0f}",
                  comm, comp, both);
    print_figure({name, static_cast<double>(bytes), "%", "higher"}, std::clamp(hidden, 0.0, 100.0),
                 detail);
}

}  // namespace

void measure_overlap(const Options& options) {
    Buffers buffers{};
    MPI_Comm_rank(MPI_COMM_WORLD, &buffers.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &buffers.ranks);
    for (const std::string& op : options.ops) {
        const auto& [name, start] = operations().at(op);
        for (const std::size_t bytes : options.sizes) {
            const int length = static_cast<int>(bytes);
            buffers.out.assign(2 * bytes, 0);
            buffers.in.assign(2 * bytes, 0);
            MPI_Type_vector(length / static_cast<int>(sizeof(double)), 1, 2, MPI_DOUBLE,
                            &buffers.spaced);
            MPI_Type_commit(&buffers.spaced);
            print_overlap(name, length, sample_spans(start, buffers, length, options));
            MPI_Type_free(&buffers.spaced);
        }
    }
}

}  // namespace vecmpi::bench
