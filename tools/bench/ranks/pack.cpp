// SPDX-License-Identifier: BSD-3-Clause
// pack: MPI_Pack and MPI_Unpack over the table of layouts, one rank, with memcpy of as many bytes
// measured beside each. Makes sure that what is unpacked packs to the same bytes; no more is
// tested.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "bench.hpp"
#include "layouts.hpp"
#include "record.hpp"
#include "timing.hpp"

namespace vecmpi::bench {
namespace {

constexpr long least_samples = 5;
constexpr double share_of_memcpy = 0.2;
constexpr std::size_t most_memory = std::size_t{256} << 20;
constexpr double most_warming_ns = 3e9;

// First calls are served otherwise than later ones: a plan is made once the library has spent
// enough on the type, by its own count (docs/datatypes.md), which begins anew for twice as much
// where that was too early; ten more calls decide whether it is used.
struct Warming {
    double worth_ns = 0, call_ns = 1;
    long calls() const {
        constexpr long least = 40;
        return std::max(least, 1 + static_cast<long>(4 * worth_ns / call_ns));
    }
};

Warming warming_of(MPI_Datatype type, std::size_t bytes) {
    constexpr double share = 20, plan_ns = 5000, number_ns = 32;
    int integers = 0, addresses = 0, types = 0, combiner = 0;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    const double numbers = integers + addresses + types;
    return {share * (plan_ns + number_ns * numbers), 128 + static_cast<double>(bytes) / 16};
}

template <typename Call>
Samples sample(const Call& call, double seconds, const Warming& warming = {}) {
    const double warm_until = now_ns() + most_warming_ns;
    for (long i = warming.calls(); i > 0 && now_ns() < warm_until; i--) call();
    return sample_batches(call, seconds, least_samples);
}

struct Memory {
    explicit Memory(std::size_t bytes) : bytes(new char[bytes + 64]) {
        for (std::size_t i = 0; i < bytes + 64; i++)
            this->bytes[i] = static_cast<char>(i * 2654435761u >> 13);
    }
    std::unique_ptr<char[]> bytes;
};

struct Cell {
    const LayoutRow& row;
    std::size_t at;     // what was asked for
    std::size_t bytes;  // packed, what it came to
};

void print_cell(const Cell& cell, const char* call, const Samples& samples, double memcpy_ns) {
    const auto rate = [&](double ns) {
        return static_cast<double>(cell.bytes) / std::max(ns, 1e-3);
    };
    const double ns = samples.quantile(0.5);
    char detail[96];
    std::snprintf(detail, sizeof detail, "{\"memcpy\":%.6g,\"of_memcpy\":%.6g}", rate(memcpy_ns),
                  memcpy_ns / std::max(ns, 1e-3));
    JsonLine line("figure");
    line.text("name", std::string(call) + " " + cell.row.name);
    line.number("at", static_cast<double>(cell.at)).text("unit", "GB/s").text("better", "higher");
    line.number("value", rate(ns)).number("p10", rate(samples.quantile(0.9)));
    line.number("p90", rate(samples.quantile(0.1)));
    line.number("samples", static_cast<double>(samples.count()));
    line.raw("labels", "{\"call\":" + json_quoted(call) +
                           ",\"layout\":" + json_quoted(cell.row.name) +
                           ",\"group\":" + json_quoted(cell.row.group) + "}");
    line.raw("detail", detail).print();
}

void print_problem(const Cell& cell, const char* kind, const char* why) {
    JsonLine line(kind);
    line.text("name", cell.row.name).number("at", static_cast<double>(cell.at));
    line.text("why", why).print();
}

void measure_buffer(const Cell& cell, const Buffer& buffer, const Options& options) {
    MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
    MPI_Type_get_extent(buffer.type, &low, &extent);
    MPI_Type_get_true_extent(buffer.type, &true_low, &true_extent);
    const auto span =
        static_cast<std::size_t>(true_low + true_extent + (buffer.count - 1) * extent);
    if (span > most_memory) return;  // strides of large sizes
    Memory memory(span), packed(cell.bytes), again(cell.bytes);
    const auto size = static_cast<int>(cell.bytes);
    const auto pack = [&](char* to) {
        int position = 0;
        MPI_Pack(memory.bytes.get(), buffer.count, buffer.type, to, size, &position,
                 MPI_COMM_WORLD);
    };
    const auto unpack = [&] {
        int position = 0;
        MPI_Unpack(packed.bytes.get(), size, &position, memory.bytes.get(), buffer.count,
                   buffer.type, MPI_COMM_WORLD);
    };
    static void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;  // a real call
    const double memcpy_ns =
        sample([&] { copy(again.bytes.get(), packed.bytes.get(), cell.bytes); },
               share_of_memcpy * options.seconds)
            .quantile(0.5);
    const Warming warming = warming_of(buffer.type, cell.bytes);
    print_cell(cell, "pack", sample([&] { pack(packed.bytes.get()); }, options.seconds, warming),
               memcpy_ns);
    print_cell(cell, "unpack", sample(unpack, options.seconds, warming), memcpy_ns);
    pack(again.bytes.get());
    if (std::memcmp(packed.bytes.get(), again.bytes.get(), cell.bytes) != 0)
        print_problem(cell, "wrong", "what was unpacked packs to other bytes");
}

}  // namespace

void measure_pack(const Options& options) {
    for (const std::size_t bytes : options.sizes)
        for (const LayoutRow& row : layout_table()) {
            if (!options.types.empty() && std::find(options.types.begin(), options.types.end(),
                                                    row.group) == options.types.end())
                continue;
            Buffer buffer = row.make(row, bytes);
            int packed = 0;
            MPI_Type_size(buffer.type, &packed);
            measure_buffer(
                {row, bytes,
                 static_cast<std::size_t>(packed) * static_cast<std::size_t>(buffer.count)},
                buffer, options);
            MPI_Type_free(&buffer.type);
        }
}

}  // namespace vecmpi::bench
