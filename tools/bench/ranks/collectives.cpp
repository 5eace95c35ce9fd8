// SPDX-License-Identifier: BSD-3-Clause
// collectives: the time of a call of every collective, in one form, by size. Results are not
// checked here.
//
// For each collective and size:
//   1. a call to set up connections and one to see how long it takes;
//   2. calls to warm up: a preloaded library may serve the first ones otherwise than those after;
//   3. rows of calls, a barrier before each; a sample is the slowest rank's time of a call.
//
// Where ranks can run ahead (the root of a broadcast, all but the root of a reduction) those that
// were late answer after each 16 calls, as in `everyday`, and the row ends with an answer. A rank
// that runs ahead so has 16 calls under way at most, on all libraries alike, and its own time ends
// with the last rank's. Long rows without answers (as in `reductions`) would measure how a library
// queues hundreds of messages that nobody has asked for; a barrier after each call would measure
// the barrier.
#include <mpi.h>

#include <algorithm>

#include "bench.hpp"
#include "collective_calls.hpp"
#include "op_table.hpp"
#include "record.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

constexpr long calls_before_answer = 16;
constexpr int answer_tag = 1001;
constexpr double row_ns = 150e3;  // hides how ranks leave the barrier
constexpr long most_row = 1000, least_rows = 3, most_rows = 500;
constexpr long least_warm = 3, most_warm = 100;  // calls
constexpr double warm_share = 2;                 // warming up may take so many budgets

enum class Form { blocking, nonblocking, persistent };

struct Job {
    const CollectiveCall& call;
    Form form;
    bool in_place;
    std::size_t bytes;
    int rank, ranks;
    MPI_Comm comm;
};

int parts_of(const Job& job) {
    switch (job.call.blocks) {
        case Blocks::none:
            return 1;
        case Blocks::ranks:
            return job.ranks;
        case Blocks::neighbours:
            return 2;
    }
    return 1;
}

// Buffers and lists of one job. All numbers are 0: sums in place never grow.
class Buffers {
  public:
    explicit Buffers(const Job& job) : job_(job) {
        const int parts = parts_of(job);
        block_ = std::max(static_cast<int>(job.bytes / sizeof(float)) / parts, 1);
        count_ = block_ * parts;
        const auto entries = static_cast<std::size_t>(std::max(job.ranks, 2));
        in_.assign(entries * static_cast<std::size_t>(count_), 0.0F);
        out_ = in_;
        counts_.assign(entries, block_);
        types_.assign(entries, MPI_FLOAT);
        for (std::size_t i = 0; i < entries; i++) {
            const auto at = i * static_cast<std::size_t>(block_);
            displacements_.push_back(static_cast<int>(at));
            byte_displacements_.push_back(static_cast<int>(at * sizeof(float)));
            long_displacements_.push_back(static_cast<MPI_Aint>(at * sizeof(float)));
        }
    }
    CollectiveArguments arguments() {
        CollectiveArguments made{in_.data(),
                                 out_.data(),
                                 count_,
                                 block_,
                                 counts_.data(),
                                 displacements_.data(),
                                 byte_displacements_.data(),
                                 long_displacements_.data(),
                                 types_.data(),
                                 job_.comm};
        const InPlace whose = job_.in_place ? job_.call.in_place : InPlace::never;
        if (whose == InPlace::send || (whose == InPlace::send_of_root && job_.rank == 0))
            made.in = MPI_IN_PLACE;
        if (whose == InPlace::receive_of_root && job_.rank == 0) made.out = MPI_IN_PLACE;
        return made;
    }

  private:
    const Job& job_;
    int block_, count_;
    std::vector<float> in_, out_;
    std::vector<int> counts_, displacements_, byte_displacements_;
    std::vector<MPI_Aint> long_displacements_;
    std::vector<MPI_Datatype> types_;
};

void send_answer(int to) { MPI_Send(nullptr, 0, MPI_BYTE, to, answer_tag, MPI_COMM_WORLD); }

void receive_answer(int from) {
    MPI_Recv(nullptr, 0, MPI_BYTE, from, answer_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// One rank tells all others that it has come so far.
void answer_from(int late, const Job& job) {
    if (job.rank != late) return receive_answer(late);
    for (int to = 0; to < job.ranks; to++)
        if (to != late) send_answer(to);
}

void answer(const Job& job) {
    switch (job.call.ahead) {
        case Ahead::nobody:
            return;
        case Ahead::root:
            if (job.rank != 0) return send_answer(0);
            for (int from = 1; from < job.ranks; from++) receive_answer(from);
            return;
        case Ahead::all_but_root:
            return answer_from(0, job);
        case Ahead::lower_ranks:
            return answer_from(job.ranks - 1, job);
    }
}

// Makes the calls of one job in its form; a persistent one is prepared once.
class Caller {
  public:
    explicit Caller(const Job& job) : job_(job), buffers_(job), arguments_(buffers_.arguments()) {
        if (job.form == Form::persistent) job.call.prepare(arguments_, &request_);
    }
    ~Caller() {
        if (job_.form == Form::persistent) MPI_Request_free(&request_);
    }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

    // This rank's time of one of `count` calls in a row.
    double row(long count) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now_ns();
        for (long done = 0; done < count;) {
            const long until = std::min(done + calls_before_answer, count);
            for (; done < until; done++) call();
            answer(job_);
        }
        return (now_ns() - start) / static_cast<double>(count);
    }

  private:
    void call() {
        switch (job_.form) {
            case Form::blocking:
                return job_.call.make(arguments_);
            case Form::nonblocking:
                job_.call.post(arguments_, &request_);
                break;
            case Form::persistent:
                MPI_Start(&request_);
                break;
        }
        MPI_Wait(&request_, MPI_STATUS_IGNORE);
    }

    const Job& job_;
    Buffers buffers_;
    CollectiveArguments arguments_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

Samples sample_job(const Job& job, double seconds) {
    Caller caller(job);
    caller.row(1);
    const double cold_ns = largest(caller.row(1));
    const long warm = repetitions(cold_ns, warm_share * seconds, least_warm, most_warm);
    caller.row(warm);
    const double each_ns = largest(caller.row(std::clamp(warm / 4, 1L, calls_before_answer)));
    const long count = repetitions(each_ns, 1e-9 * row_ns, 1, most_row);
    std::vector<double> mine(static_cast<std::size_t>(
        repetitions(each_ns * static_cast<double>(count), seconds, least_rows, most_rows)));
    for (double& one : mine) one = caller.row(count);
    return slowest(mine, job.rank);
}

// As tools/bench/driver/collectives.py calls the group, then the collective.
std::string name_of(const Options& options, const CollectiveCall& call) {
    return std::string(options.multiple ? "MULTIPLE " : "SINGLE ") + options.form +
           (options.in_place ? " in place " : " ") + call.name;
}

Form form_of(const std::string& word) {
    if (word == "nonblocking") return Form::nonblocking;
    return word == "persistent" ? Form::persistent : Form::blocking;
}

MPI_Comm make_ring(int ranks) {
    const int periodic = 1;
    MPI_Comm ring = MPI_COMM_NULL;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
    return ring;
}

}  // namespace

void measure_collectives(const Options& options) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm ring = make_ring(ranks);
    for (const CollectiveCall& call : collective_calls()) {
        if (!is_chosen(options.calls, call.name)) continue;
        const std::string name = name_of(options, call);
        const MPI_Comm comm = call.on_ring() ? ring : MPI_COMM_WORLD;
        for (const std::size_t bytes : options.sizes) {
            const Job job{call, form_of(options.form), options.in_place, bytes, rank, ranks, comm};
            print_figure({name.c_str(), static_cast<double>(bytes), "ns", "lower"},
                         sample_job(job, options.seconds));
        }
    }
    MPI_Comm_free(&ring);
}

}  // namespace vecmpi::bench
