// SPDX-License-Identifier: BSD-3-Clause
// allreduce: MPI_Allreduce and other collectives of whole vectors, blocking or nonblocking, each
// with its result checked. A size whose result is wrong gives a line that says so and no figure.
//
// For each collective, element and size:
//   1. a call to set up connections and one to see how long it takes;
//   2. the receive buffer is filled with rubbish;
//   3. samples: untimed calls, a barrier, a row of calls; the slowest rank's time per call counts;
//   4. every rank compares what the last call left with what it must be.
//
// The untimed calls (--drain-bytes) use up what a rate limiter on the link lets through at once.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench.hpp"
#include "half_sum.hpp"
#include "op_table.hpp"
#include "record.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

constexpr double batch_ns = 100e3;  // a sample this long hides how ranks leave the barrier
constexpr long most_batch = 500, most_drain = 16;
constexpr long least_samples = 3, most_samples = 500;

// A prime, so that a block at a wrong place shows whatever the sizes and the number of ranks.
constexpr std::size_t period = 8191;

// What rank `rank` contributes at `index`: 0 to 7, so that sums of 64 ranks are exact in binary16.
int number_at(int rank, std::size_t index) {
    const auto place =
        static_cast<std::uint32_t>(index % period + 1 + period * static_cast<std::size_t>(rank));
    return static_cast<int>(place * 2654435761u >> 29);
}

int sum_at(int ranks, std::size_t index) {
    int sum = 0;
    for (int rank = 0; rank < ranks; rank++) sum += number_at(rank, index);
    return sum;
}

struct Element {
    const char* op;     // as on the command line
    const char* title;  // in names of figures
    MPI_Datatype type;
    MPI_Op op_handle;
    std::size_t bytes;
    void (*store)(void* element, int number);
};

void store_float(void* element, int number) {
    const auto value = static_cast<float>(number);
    std::memcpy(element, &value, sizeof value);
}

void store_half(void* element, int number) {
    const std::uint16_t value = half_of(static_cast<float>(number));
    std::memcpy(element, &value, sizeof value);
}

void half_sum(void* in, void* inout, int* count, MPI_Datatype*) {
    add_halves(static_cast<const std::uint16_t*>(in), static_cast<std::uint16_t*>(inout),
               static_cast<std::size_t>(*count));
}

// The predefined sum of floats, and what Horovod hands to MPI for float16: two bytes that MPI knows
// nothing of and a commutative op of the program.
class Elements {
  public:
    Elements() {
        MPI_Type_contiguous(2, MPI_BYTE, &two_bytes_);
        MPI_Type_commit(&two_bytes_);
        MPI_Op_create(half_sum, 1, &half_op_);
        list_ = {{"sum", "SUM FLOAT", MPI_FLOAT, MPI_SUM, sizeof(float), store_float},
                 {"user", "user float16 sum", two_bytes_, half_op_, 2, store_half}};
    }
    ~Elements() {
        MPI_Op_free(&half_op_);
        MPI_Type_free(&two_bytes_);
    }
    Elements(const Elements&) = delete;
    Elements& operator=(const Elements&) = delete;
    const std::vector<Element>& list() const { return list_; }

  private:
    MPI_Datatype two_bytes_ = MPI_DATATYPE_NULL;
    MPI_Op half_op_ = MPI_OP_NULL;
    std::vector<Element> list_;
};

struct Arguments {
    char *in, *out;
    int count;  // of the whole vector
    int block;  // of a rank's share, where the vector has one for each rank
    int rank, ranks;
    const Element& element;
    char* broadcast() const { return rank == 0 ? in : out; }
};

// Elements with number_of(i) for i = 0 .. period - 1, ready to be laid out again and again.
template <typename NumberOf>
std::vector<char> pattern_of(const Element& element, NumberOf number_of) {
    std::vector<char> pattern(period * element.bytes);
    for (std::size_t i = 0; i < period; i++)
        element.store(&pattern[i * element.bytes], number_of(i));
    return pattern;
}

std::vector<char> pattern_of_rank(const Element& element, int rank) {
    return pattern_of(element, [&](std::size_t i) { return number_at(rank, i); });
}

std::vector<char> pattern_of_sum(const Element& element, int ranks) {
    return pattern_of(element, [&](std::size_t i) { return sum_at(ranks, i); });
}

// The first element of `buffer` that is not what the pattern has from `first` on, -1 if none.
long first_difference(const char* buffer, std::size_t count, const std::vector<char>& pattern,
                      std::size_t first, std::size_t bytes) {
    for (std::size_t done = 0; done < count;) {
        const std::size_t from = (first + done) % period;
        const std::size_t length = std::min(period - from, count - done);
        const char *got = buffer + done * bytes, *wanted = &pattern[from * bytes];
        if (std::memcmp(got, wanted, length * bytes) != 0) {
            std::size_t i = 0;
            while (std::memcmp(got + i * bytes, wanted + i * bytes, bytes) == 0) i++;
            return static_cast<long>(done + i);
        }
        done += length;
    }
    return -1;
}

using Args = const Arguments&;

long check_sum(Args a, std::size_t first, int count) {
    return first_difference(a.out, static_cast<std::size_t>(count),
                            pattern_of_sum(a.element, a.ranks), first, a.element.bytes);
}

long check_gathered(Args a) {
    const auto block = static_cast<std::size_t>(a.block);
    for (int rank = 0; rank < a.ranks; rank++) {
        const std::size_t begin = block * static_cast<std::size_t>(rank);
        const long wrong = first_difference(a.out + begin * a.element.bytes, block,
                                            pattern_of_rank(a.element, rank), 0, a.element.bytes);
        if (wrong >= 0) return static_cast<long>(begin) + wrong;
    }
    return -1;
}

long check_exchanged(Args a) {
    const auto block = static_cast<std::size_t>(a.block);
    const std::size_t mine = block * static_cast<std::size_t>(a.rank);
    for (int rank = 0; rank < a.ranks; rank++) {
        const std::size_t begin = block * static_cast<std::size_t>(rank);
        const long wrong =
            first_difference(a.out + begin * a.element.bytes, block,
                             pattern_of_rank(a.element, rank), mine, a.element.bytes);
        if (wrong >= 0) return static_cast<long>(begin) + wrong;
    }
    return -1;
}

struct Collective {
    const char* call;   // as on the command line
    const char* title;  // in names of figures
    bool reduces, splits;
    // What one link must carry in each direction, in vectors.
    double (*moved)(double ranks);
    void (*make)(Args);
    void (*start)(Args, MPI_Request*);
    long (*first_wrong)(Args);  // -1: all is right on this rank
};

const std::vector<Collective>& collective_table() {
    static const auto world = MPI_COMM_WORLD;
    static const std::vector<Collective> table{
        {"allreduce", "Allreduce", true, false, [](double p) { return 2 * (p - 1) / p; },
         [](Args a) {
             MPI_Allreduce(a.in, a.out, a.count, a.element.type, a.element.op_handle, world);
         },
         [](Args a, MPI_Request* r) {
             MPI_Iallreduce(a.in, a.out, a.count, a.element.type, a.element.op_handle, world, r);
         },
         [](Args a) { return check_sum(a, 0, a.count); }},
        {"bcast", "Bcast", false, false, [](double) { return 1.0; },
         [](Args a) { MPI_Bcast(a.broadcast(), a.count, a.element.type, 0, world); },
         [](Args a, MPI_Request* r) {
             MPI_Ibcast(a.broadcast(), a.count, a.element.type, 0, world, r);
         },
         [](Args a) {
             return first_difference(a.broadcast(), static_cast<std::size_t>(a.count),
                                     pattern_of_rank(a.element, 0), 0, a.element.bytes);
         }},
        {"reduce", "Reduce", true, false, [](double) { return 1.0; },
         [](Args a) {
             MPI_Reduce(a.in, a.out, a.count, a.element.type, a.element.op_handle, 0, world);
         },
         [](Args a, MPI_Request* r) {
             MPI_Ireduce(a.in, a.out, a.count, a.element.type, a.element.op_handle, 0, world, r);
         },
         [](Args a) { return a.rank == 0 ? check_sum(a, 0, a.count) : -1; }},
        {"reduce_scatter", "Reduce_scatter_block", true, true, [](double p) { return (p - 1) / p; },
         [](Args a) {
             MPI_Reduce_scatter_block(a.in, a.out, a.block, a.element.type, a.element.op_handle,
                                      world);
         },
         [](Args a, MPI_Request* r) {
             MPI_Ireduce_scatter_block(a.in, a.out, a.block, a.element.type, a.element.op_handle,
                                       world, r);
         },
         [](Args a) {
             const auto first =
                 static_cast<std::size_t>(a.block) * static_cast<std::size_t>(a.rank);
             return check_sum(a, first, a.block);
         }},
        {"allgather", "Allgather", false, true, [](double p) { return (p - 1) / p; },
         [](Args a) {
             MPI_Allgather(a.in, a.block, a.element.type, a.out, a.block, a.element.type, world);
         },
         [](Args a, MPI_Request* r) {
             MPI_Iallgather(a.in, a.block, a.element.type, a.out, a.block, a.element.type, world,
                            r);
         },
         check_gathered},
        {"alltoall", "Alltoall", false, true, [](double p) { return (p - 1) / p; },
         [](Args a) {
             MPI_Alltoall(a.in, a.block, a.element.type, a.out, a.block, a.element.type, world);
         },
         [](Args a, MPI_Request* r) {
             MPI_Ialltoall(a.in, a.block, a.element.type, a.out, a.block, a.element.type, world, r);
         },
         check_exchanged},
    };
    return table;
}

struct Job {
    const Collective& collective;
    const Element& element;
    std::size_t bytes;  // as asked for; the vector has this many or, with blocks, a little less
    int rank, ranks;
    bool nonblocking;
};

// Buffers of one job. The numbers to send never change; the receive buffer can be spoilt.
class Vectors {
  public:
    explicit Vectors(const Job& job) : job_(job) {
        const auto ranks = static_cast<std::size_t>(job.ranks);
        const std::size_t count = std::max<std::size_t>(job.bytes / job.element.bytes, 1);
        block_ = job.collective.splits ? std::max<std::size_t>(count / ranks, 1) : 0;
        count_ = job.collective.splits ? block_ * ranks : count;
        const std::vector<char> pattern = pattern_of_rank(job.element, job.rank);
        in_.resize(count_ * job.element.bytes);
        for (std::size_t done = 0; done < in_.size(); done += pattern.size())
            std::memcpy(&in_[done], pattern.data(), std::min(pattern.size(), in_.size() - done));
        out_.resize(in_.size());
    }
    void spoil() { std::fill(out_.begin(), out_.end(), static_cast<char>(0xa5)); }
    Arguments arguments() {
        return {
            in_.data(), out_.data(), static_cast<int>(count_), static_cast<int>(block_), job_.rank,
            job_.ranks, job_.element};
    }
    double moved() const {
        return job_.collective.moved(job_.ranks) * static_cast<double>(in_.size());
    }

  private:
    const Job& job_;
    std::size_t count_, block_;
    std::vector<char> in_, out_;
};

void call(const Job& job, Args arguments) {
    if (!job.nonblocking) return job.collective.make(arguments);
    MPI_Request request = MPI_REQUEST_NULL;
    job.collective.start(arguments, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// This rank's time of one of `count` calls in a row, after `drain` that are not timed.
double row_ns(const Job& job, Args arguments, long drain, long count) {
    for (long i = 0; i < drain; i++) call(job, arguments);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    for (long i = 0; i < count; i++) call(job, arguments);
    return (now_ns() - start) / static_cast<double>(count);
}

// How many untimed calls use up `bytes` of a link's credit.
long drain_calls(double bytes, double moved) {
    if (bytes <= 0) return 0;
    return std::clamp(std::lround(std::ceil(bytes / std::max(moved, 1.0))), 1L, most_drain);
}

// A row has at least as many calls as went untimed before it, or credit that came back during the
// barrier would count.
Samples sample_job(const Job& job, Vectors& vectors, const Options& options) {
    const Arguments arguments = vectors.arguments();
    row_ns(job, arguments, 0, 1);
    const double each_ns = largest(row_ns(job, arguments, 0, 1));
    const long drain = drain_calls(static_cast<double>(options.drain_bytes), vectors.moved());
    const long count = std::max(repetitions(each_ns, 1e-9 * batch_ns, 1, most_batch), drain);
    const double sample_ns = each_ns * static_cast<double>(drain + count);
    std::vector<double> mine(static_cast<std::size_t>(
        repetitions(sample_ns, options.seconds, least_samples, most_samples)));
    vectors.spoil();
    for (double& sample : mine) sample = row_ns(job, arguments, drain, count);
    return slowest(mine, job.rank);
}

// On rank 0: what is wrong and where, empty if nothing is. Not by a reduction: one may be broken.
std::string what_is_wrong(const Job& job, Args arguments) {
    long here = job.collective.first_wrong(arguments);
    std::vector<long> all(static_cast<std::size_t>(job.ranks));
    MPI_Gather(&here, 1, MPI_LONG, all.data(), 1, MPI_LONG, 0, MPI_COMM_WORLD);
    const auto is_wrong = [](long index) { return index >= 0; };
    const auto first = std::find_if(all.begin(), all.end(), is_wrong);
    if (job.rank != 0 || first == all.end()) return {};
    return "element " + std::to_string(*first) + " on rank " + std::to_string(first - all.begin()) +
           " is wrong, " + std::to_string(std::count_if(all.begin(), all.end(), is_wrong)) +
           " of " + std::to_string(job.ranks) + " ranks have wrong elements";
}

std::string name_of(const Job& job) {
    const Collective& collective = job.collective;
    std::string name = collective.title;
    if (job.nonblocking) name = "I" + name, name[1] = static_cast<char>(std::tolower(name[1]));
    return collective.reduces ? name + " " + job.element.title : name;
}

void print_job(const Job& job, const std::string& wrong, const Samples& samples, double moved) {
    if (job.rank != 0) return;
    JsonLine line(wrong.empty() ? "figure" : "wrong");
    line.text("name", name_of(job)).number("at", static_cast<double>(job.bytes));
    if (!wrong.empty()) return line.text("why", wrong).print();
    line.text("unit", "ns").text("better", "lower").number("value", samples.midmean());
    line.number("p10", samples.quantile(0.1)).number("p90", samples.quantile(0.9));
    line.number("samples", static_cast<double>(samples.count()));
    line.raw("labels", "{\"call\":" + json_quoted(job.collective.call) +
                           ",\"op\":" + json_quoted(job.element.op) +
                           ",\"ranks\":" + std::to_string(job.ranks) + "}");
    line.raw("detail", "{\"moved\":" + std::to_string(std::llround(moved)) + "}").print();
}

void measure_job(const Job& job, const Options& options) {
    Vectors vectors(job);
    const Samples samples = sample_job(job, vectors, options);
    print_job(job, what_is_wrong(job, vectors.arguments()), samples, vectors.moved());
}

}  // namespace

void measure_allreduce(const Options& options) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const Elements elements;
    for (const Collective& collective : collective_table()) {
        if (!is_chosen(options.calls, collective.call)) continue;
        for (const Element& element : elements.list()) {
            // What does not reduce has no op: floats, once.
            const bool chosen = collective.reduces ? is_chosen(options.ops, element.op)
                                                   : &element == &elements.list().front();
            if (!chosen) continue;
            for (const std::size_t bytes : options.sizes)
                measure_job({collective, element, bytes, rank, ranks, options.nonblocking},
                            options);
        }
    }
}

}  // namespace vecmpi::bench
