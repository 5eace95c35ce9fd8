// SPDX-License-Identifier: BSD-3-Clause
// reductions: blocking reducing collectives, and how many elements the busiest rank reduces in a
// call where the op is the program's own and can count. Every rank has the same numbers of calls.
//
// For each call, op, type and size:
//   1. a call to warm up and one to see how long it takes;
//   2. batches of calls, a barrier before each; a sample is the slowest rank's time per call.
// With --count-calls N each call is made N times and nothing is timed: for the driver, which reads
// the preloaded library's own counters of such a run.
#include <mpi.h>

#include <algorithm>
#include <atomic>

#include "bench.hpp"
#include "half_sum.hpp"
#include "op_table.hpp"
#include "record.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

constexpr double batch_ns = 100e3;  // a sample this long hides how ranks leave the barrier
constexpr long most_batch = 500;
constexpr long least_samples = 3, most_samples = 500;  // 3: plain ranks that share a CPU crawl

// Elements that the user-defined op has reduced on this rank; a library may call it from any of its
// threads. Relaxed: read only between collectives, whose completion orders it.
std::atomic<std::uint64_t> reduced_here{0};

std::uint64_t reduced_so_far() { return reduced_here.load(std::memory_order_relaxed); }

void half_sum(void* in, void* inout, int* count, MPI_Datatype*) {
    const auto length = static_cast<std::size_t>(*count);
    add_halves(static_cast<const std::uint16_t*>(in), static_cast<std::uint16_t*>(inout), length);
    reduced_here.fetch_add(length, std::memory_order_relaxed);
}

struct Arguments {
    const void* in;
    void* out;
    int count;  // of the whole vector of a rank
    MPI_Datatype type;
    MPI_Op op;
    int ranks;
};

struct CallRow {
    const char* name;
    void (*make)(const Arguments&);
    bool splits;     // the vector has one block for each rank
    bool with_user;  // measured with the user-defined op as well
};

const std::vector<CallRow>& call_table() {
    using A = const Arguments&;
    static const std::vector<CallRow> table{
        {"Allreduce",
         [](A a) { MPI_Allreduce(a.in, a.out, a.count, a.type, a.op, MPI_COMM_WORLD); }, false,
         true},
        {"Reduce", [](A a) { MPI_Reduce(a.in, a.out, a.count, a.type, a.op, 0, MPI_COMM_WORLD); },
         false, true},
        {"Reduce_scatter_block",
         [](A a) {
             MPI_Reduce_scatter_block(a.in, a.out, a.count / a.ranks, a.type, a.op, MPI_COMM_WORLD);
         },
         true, false},
        {"Scan", [](A a) { MPI_Scan(a.in, a.out, a.count, a.type, a.op, MPI_COMM_WORLD); }, false,
         false},
    };
    return table;
}

// What is reduced: a predefined pair or the user-defined op.
struct Operand {
    std::string op, type;  // as in the table; "user" and "" for the program's own
    MPI_Op op_handle;
    MPI_Datatype type_handle;
    std::size_t extent;
    Store store;
    bool user;
};

// Two bytes that MPI knows nothing of, and the op that sums them as binary16.
class UserOp {
  public:
    UserOp() {
        MPI_Type_contiguous(2, MPI_BYTE, &type_);
        MPI_Type_commit(&type_);
        MPI_Op_create(half_sum, 1, &op_);
    }
    ~UserOp() {
        MPI_Op_free(&op_);
        MPI_Type_free(&type_);
    }
    UserOp(const UserOp&) = delete;
    UserOp& operator=(const UserOp&) = delete;
    Operand operand() const { return {"user", "", op_, type_, 2, store<Half>, true}; }

  private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    MPI_Op op_ = MPI_OP_NULL;
};

// Asks with one element and errors returned.
bool library_takes(const OpRow& op, const TypeRow& type) {
    alignas(64) char in[64] = {}, inout[64] = {};
    return (op.kinds & type.kind) && type.handle != MPI_DATATYPE_NULL &&
           MPI_Reduce_local(in, inout, 1, type.handle, op.handle) == MPI_SUCCESS;
}

// Ones: SUM grows to the number of ranks, all other results stay 0 or 1. A run that counts gets
// only pairs that an earlier run has measured, and must not reduce anything besides.
std::vector<Operand> chosen_operands(const Options& options) {
    std::vector<Operand> operands;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // older libraries ask WORLD's
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);   // MPI 4 asks SELF's
    for (const OpRow& op : op_table())
        for (const TypeRow& type : type_table())
            if (is_chosen(options.ops, op.name) && is_chosen(options.types, type.name) &&
                (options.count_calls > 0 || library_takes(op, type)))
                operands.push_back(
                    {op.name, type.name, op.handle, type.handle, type.extent, type.store, false});
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    return operands;
}

struct Job {
    const CallRow& call;
    const Operand& operand;
    std::size_t bytes;
    int rank, ranks;
};

// Buffers for one job and the arguments that point to them.
class Vectors {
  public:
    explicit Vectors(const Job& job) {
        std::size_t count = std::max<std::size_t>(job.bytes / job.operand.extent, 1);
        if (job.call.splits) {  // at 5 ranks some sizes are a little less than asked for
            const auto ranks = static_cast<std::size_t>(job.ranks);
            count = std::max(count / ranks, std::size_t{1}) * ranks;
        }
        in_.resize(count * job.operand.extent);
        out_.resize(in_.size());
        for (std::size_t i = 0; i < count; i++) job.operand.store(&in_[i * job.operand.extent], 1);
        arguments_ = {in_.data(),
                      out_.data(),
                      static_cast<int>(count),
                      job.operand.type_handle,
                      job.operand.op_handle,
                      job.ranks};
    }
    Vectors(const Vectors&) = delete;
    Vectors& operator=(const Vectors&) = delete;
    const Arguments& arguments() const { return arguments_; }

  private:
    std::vector<char> in_, out_;
    Arguments arguments_{};
};

// Makes calls and counts them, so that elements can be divided by calls.
class Caller {
  public:
    Caller(const CallRow& call, const Arguments& arguments)
        : call_(call), arguments_(arguments), before_(reduced_so_far()) {}

    // This rank's time of one of `count` calls in a row.
    double batch_ns(long count) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now_ns();
        for (long i = 0; i < count; i++) call_.make(arguments_);
        calls_ += count;
        return (now_ns() - start) / static_cast<double>(count);
    }
    // For each call on the rank that reduced most.
    double elements_of_busiest() const {
        const auto here = static_cast<double>(reduced_so_far() - before_);
        return largest(here / static_cast<double>(calls_));
    }

  private:
    const CallRow& call_;
    const Arguments& arguments_;
    std::uint64_t before_;
    long calls_ = 0;
};

Samples sample_calls(Caller& caller, int rank, double seconds) {
    caller.batch_ns(1);
    const double each_ns = largest(caller.batch_ns(1));
    const long batch = repetitions(each_ns, 1e-9 * batch_ns, 1, most_batch);
    const double sample_ns = each_ns * static_cast<double>(batch);
    std::vector<double> mine(
        static_cast<std::size_t>(repetitions(sample_ns, seconds, least_samples, most_samples)));
    for (double& sample : mine) sample = caller.batch_ns(batch);
    return slowest(mine, rank);
}

std::string name_of(const Job& job) {
    const Operand& operand = job.operand;
    return std::to_string(job.ranks) + " ranks: " + job.call.name + " " +
           (operand.user ? "user float16 sum" : operand.op + " " + operand.type);
}

std::string labels_of(const Job& job) {
    return "{\"call\":" + json_quoted(job.call.name) + ",\"op\":" + json_quoted(job.operand.op) +
           ",\"type\":" + json_quoted(job.operand.type) +
           ",\"ranks\":" + std::to_string(job.ranks) + "}";
}

// `detail`: the elements of a vector and, where they were counted, those reduced by the busiest.
void print_job(const Job& job, const char* unit, const Samples& samples,
               const std::string& detail) {
    if (job.rank != 0) return;
    JsonLine line("figure");
    line.text("name", name_of(job)).raw("labels", labels_of(job));
    line.number("at", static_cast<double>(job.bytes)).text("unit", unit).text("better", "lower");
    line.number("value", samples.midmean());
    line.number("p10", samples.quantile(0.1)).number("p90", samples.quantile(0.9));
    line.number("samples", static_cast<double>(samples.count())).raw("detail", detail).print();
}

void time_job(const Job& job, double seconds) {
    const Vectors vectors(job);
    Caller caller(job.call, vectors.arguments());
    const Samples samples = sample_calls(caller, job.rank, seconds);
    const double busiest = caller.elements_of_busiest();
    std::string detail = "{\"of\":" + std::to_string(vectors.arguments().count);
    if (job.operand.user) detail += ",\"busiest\":" + std::to_string(busiest);
    print_job(job, "ns", samples, detail + "}");
}

// Nothing but the calls: no other reduction may reach the library's counters.
void count_job(const Job& job, long calls) {
    const Vectors vectors(job);
    for (long i = 0; i < calls; i++) job.call.make(vectors.arguments());
    Samples made;
    made.add(static_cast<double>(calls));
    print_job(job, "calls", made, "{\"of\":" + std::to_string(vectors.arguments().count) + "}");
}

}  // namespace

void measure_reductions(const Options& options) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<Operand> operands = chosen_operands(options);
    const UserOp user;
    if (is_chosen(options.ops, "user")) operands.push_back(user.operand());
    for (const CallRow& call : call_table())
        for (const Operand& operand : operands)
            for (const std::size_t bytes : options.sizes) {
                if (!is_chosen(options.calls, call.name)) continue;
                if (operand.user && !call.with_user) continue;
                const Job job{call, operand, bytes, rank, ranks};
                if (options.count_calls > 0)
                    count_job(job, options.count_calls);
                else
                    time_job(job, options.seconds);
            }
}

}  // namespace vecmpi::bench
