// SPDX-License-Identifier: BSD-3-Clause
// reduce: MPI_Reduce_local over the table of ops and types, one rank, with memcpy between the same
// two buffers measured before each cell. Not a test of results: it only makes sure that a call does
// its work.
//
// For each size, op and type that the library takes:
//   1. memcpy from `in` to `inout`;
//   2. one call whose result is known, on the first elements;
//   3. calls in place, in batches, that leave every operand as it is (see OpRow::neutral) or, with
//      random numbers, as the first call made it.
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>

#include "bench.hpp"
#include "op_table.hpp"
#include "record.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

constexpr long least_samples = 3;         // of a call: a second at 64 MiB for a table of 130 cells
constexpr double share_of_memcpy = 0.25;  // of a cell's budget
constexpr std::size_t proven_bytes = 4096;
constexpr std::size_t nanoseconds_below = 1024;  // smaller calls are shown by time, not by rate

// Two buffers at different places in their pages, each on a cache line of its own.
class Buffers {
  public:
    explicit Buffers(std::size_t bytes) : stride_((bytes + page - 1) / page * page + page / 2) {
        memory_.reset(
            static_cast<char*>(std::aligned_alloc(page, (2 * stride_ / page + 1) * page)));
        if (memory_ == nullptr) throw std::bad_alloc();
    }
    char* in() { return memory_.get(); }
    char* inout() { return memory_.get() + stride_; }

  private:
    struct Free {
        void operator()(char* memory) const { std::free(memory); }
    };
    static constexpr std::size_t page = 4096;
    std::size_t stride_;
    std::unique_ptr<char, Free> memory_;
};

// `count` equal elements, by copies of doubling length.
void fill(char* buffer, std::size_t count, const TypeRow& type, int number) {
    type.store(buffer, number);
    for (std::size_t done = 1; done < count; done *= 2)
        std::memcpy(buffer + done * type.extent, buffer,
                    std::min(done, count - done) * type.extent);
}

// Numbers from 0 to `most` (1 or 2) that are the same in every run. They come again after so many
// elements that no branch predictor learns them.
void fill_random(char* buffer, std::size_t count, const TypeRow& type, int most,
                 std::uint32_t seed) {
    constexpr std::size_t period = 65536;
    std::minstd_rand generator(seed);
    const std::size_t fresh = std::min(count, period);
    for (std::size_t i = 0; i < fresh; i++)
        type.store(buffer + i * type.extent, static_cast<int>(generator() >> 8) % (most + 1));
    for (std::size_t done = fresh; done < count; done *= 2)
        std::memcpy(buffer + done * type.extent, buffer,
                    std::min(done, count - done) * type.extent);
}

template <typename Call>
Samples sample(const Call& call, double seconds, long fewest) {
    call();  // warms caches and pages
    return sample_batches(call, seconds, fewest);
}

// A cell of the table at one size.
struct Cell {
    const OpRow& op;
    const TypeRow& type;
    std::size_t count;
};

bool is_there(MPI_Datatype type, std::size_t extent) {
    MPI_Aint lower = 0, theirs = 0;
    return type != MPI_DATATYPE_NULL && MPI_Type_get_extent(type, &lower, &theirs) == MPI_SUCCESS &&
           static_cast<std::size_t>(theirs) == extent;
}

enum class Answer { works, refused, wrong };

// Where 1 op neutral is 1, a call that changes the operand: 1 becomes 0 by LAND, BAND and PROD, the
// neutral number becomes 1 by the others.
Answer ask(const Cell& cell, Buffers& buffers) {
    const auto& [op, type, whole] = cell;
    if (!is_there(type.handle, type.extent)) return Answer::refused;
    const std::size_t count = std::min(whole, proven_bytes / type.extent);
    const int before = op.neutral == 1 ? 1 : op.neutral, after = op.neutral == 1 ? 0 : 1;
    fill(buffers.in(), count, type, after);
    fill(buffers.inout(), count, type, before);
    if (MPI_Reduce_local(buffers.in(), buffers.inout(), static_cast<int>(count), type.handle,
                         op.handle) != MPI_SUCCESS)
        return Answer::refused;
    const bool right = std::memcmp(buffers.in(), buffers.inout(), count * type.extent) == 0;
    return right ? Answer::works : Answer::wrong;
}

double sample_memcpy(Buffers& buffers, std::size_t bytes, double seconds) {
    static void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;  // a real call
    return sample([&] { copy(buffers.inout(), buffers.in(), bytes); }, share_of_memcpy * seconds, 1)
        .quantile(0.5);
}

void fill_both(const Cell& cell, Buffers& buffers, bool random) {
    if (random && cell.op.decides) {
        const int most = cell.type.kind == logical_kind ? 1 : 2;
        fill_random(buffers.in(), cell.count, cell.type, most, 1);
        fill_random(buffers.inout(), cell.count, cell.type, most, 2);
    } else {
        fill(buffers.in(), cell.count, cell.type, cell.op.neutral);
        fill(buffers.inout(), cell.count, cell.type, 1);
    }
}

Samples sample_cell(const Cell& cell, Buffers& buffers, double seconds) {
    const auto call = [in = buffers.in(), inout = buffers.inout(), type = cell.type.handle,
                       op = cell.op.handle, count = static_cast<int>(cell.count)] {
        MPI_Reduce_local(in, inout, count, type, op);
    };
    return sample(call, seconds, least_samples);
}

std::string labels_of(const Cell& cell) {
    return "{\"op\":" + json_quoted(cell.op.name) + ",\"type\":" + json_quoted(cell.type.name) +
           ",\"kind\":" + json_quoted(kind_name(cell.type.kind)) +
           ",\"bits\":" + std::to_string(cell.type.bits) + "}";
}

// `bytes` of one buffer in GB/s, or the time of a call where that says more. The clock cannot
// tell 0 from a fraction of a nanosecond.
void print_cell(const Cell& cell, std::size_t at, const Samples& samples, double memcpy_ns) {
    const auto bytes = static_cast<double>(cell.count * cell.type.extent);
    const bool by_time = at < nanoseconds_below;
    const auto shown = [&](double ns) { return by_time ? ns : bytes / std::max(ns, 1e-3); };
    const double ns = samples.quantile(0.5);
    char detail[96];
    std::snprintf(detail, sizeof detail, "{\"memcpy\":%.6g,\"of_memcpy\":%.6g}", shown(memcpy_ns),
                  memcpy_ns / std::max(ns, 1e-3));
    const double slow = samples.quantile(0.9), fast = samples.quantile(0.1);
    JsonLine line("figure");
    line.text("name", std::string(cell.op.name) + " " + cell.type.name);
    line.number("at", static_cast<double>(at)).text("unit", by_time ? "ns" : "GB/s");
    line.text("better", by_time ? "lower" : "higher").number("value", shown(ns));
    line.number("p10", shown(by_time ? fast : slow)).number("p90", shown(by_time ? slow : fast));
    line.number("samples", static_cast<double>(samples.count()));
    line.raw("labels", labels_of(cell)).raw("detail", detail).print();
}

void print_skipped(const Cell& cell, std::size_t at, const char* why) {
    JsonLine line("skipped");
    line.text("name", std::string(cell.op.name) + " " + cell.type.name);
    line.number("at", static_cast<double>(at)).text("why", why).print();
}

void measure_cell(const Cell& cell, std::size_t at, Buffers& buffers, const Options& options) {
    switch (ask(cell, buffers)) {
        case Answer::refused:
            return print_skipped(cell, at, "the library refuses it");
        case Answer::wrong:
            return print_skipped(cell, at, "the result is not what it should be");
        case Answer::works:
            break;
    }
    const std::size_t bytes = cell.count * cell.type.extent;
    const double memcpy_ns = sample_memcpy(buffers, bytes, options.seconds);
    fill_both(cell, buffers, options.random);
    print_cell(cell, at, sample_cell(cell, buffers, options.seconds), memcpy_ns);
}

}  // namespace

void measure_reduce(const Options& options) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // older libraries ask WORLD's
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);   // MPI 4 asks SELF's
    for (const std::size_t bytes : options.sizes) {
        Buffers buffers(bytes + 64);  // at least one element of any type
        for (const OpRow& op : op_table())
            for (const TypeRow& type : type_table())
                if ((op.kinds & type.kind) && is_chosen(options.ops, op.name) &&
                    is_chosen(options.types, type.name))
                    measure_cell({op, type, std::max<std::size_t>(bytes / type.extent, 1)}, bytes,
                                 buffers, options);
    }
}

// For the driver, which has no table of its own. No MPI call in here.
void print_op_table() {
    for (const OpRow& op : op_table())
        JsonLine("op").text("name", op.name).number("kinds", op.kinds).print();
    for (const TypeRow& type : type_table())
        JsonLine("type")
            .text("name", type.name)
            .number("kinds", type.kind)
            .raw("alias", type.note == Note::alias ? "true" : "false")
            .raw("fragile", type.note == Note::fragile ? "true" : "false")
            .print();
}

}  // namespace vecmpi::bench
