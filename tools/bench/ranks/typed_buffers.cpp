// SPDX-License-Identifier: BSD-3-Clause
#include "typed_buffers.hpp"

#include <algorithm>
#include <cstdio>

#include "record.hpp"

namespace vecmpi::bench {

Memory::Memory(std::size_t wanted) : size(wanted + 64), bytes(new char[size]) { fill(); }

void Memory::fill() {
    for (std::size_t i = 0; i < size; i++) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
}

std::size_t span_of(const Buffer& buffer) {
    constexpr std::size_t most_memory = std::size_t{256} << 20;
    MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
    MPI_Type_get_extent(buffer.type, &low, &extent);
    MPI_Type_get_true_extent(buffer.type, &true_low, &true_extent);
    const auto span =
        static_cast<std::size_t>(true_low + true_extent + (buffer.count - 1) * extent);
    return span > most_memory ? 0 : span;
}

namespace {

// Integers, addresses and types of a description, those of the types in it too.
double described_numbers(MPI_Datatype type) {
    int integers = 0, addresses = 0, types = 0, combiner = 0;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED) return 0;
    std::vector<int> integer(static_cast<std::size_t>(integers));
    std::vector<MPI_Aint> address(static_cast<std::size_t>(addresses));
    std::vector<MPI_Datatype> inner(static_cast<std::size_t>(types));
    MPI_Type_get_contents(type, integers, addresses, types, integer.data(), address.data(),
                          inner.data());
    double numbers = integers + addresses + types;
    for (MPI_Datatype& part : inner) {
        numbers += described_numbers(part);
        MPI_Type_get_envelope(part, &integers, &addresses, &types, &combiner);
        if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&part);
    }
    return numbers;
}

}  // namespace

long warming_calls(MPI_Datatype type, std::size_t bytes) {
    constexpr double share = 20, plan_ns = 5000, number_ns = 32;
    constexpr long least = 40;
    const double worth_ns = share * (plan_ns + number_ns * described_numbers(type));
    const double call_ns = 128 + static_cast<double>(bytes) / 16;
    return std::max(least, 1 + static_cast<long>(4 * worth_ns / call_ns));
}

void print_cell(const Cell& cell, const char* call, const Samples& samples, const char* beside,
                double beside_ns, const LineLimit& limit) {
    const auto rate = [&](double ns) {
        return static_cast<double>(cell.bytes) / std::max(ns, 1e-3);
    };
    const double ns = samples.quantile(0.5);
    char detail[96], lines[96] = "";
    std::snprintf(detail, sizeof detail, "{\"%s\":%.6g,\"of_%s\":%.6g", beside, rate(beside_ns),
                  beside, beside_ns / std::max(ns, 1e-3));
    if (limit.bytes != 0)
        std::snprintf(lines, sizeof lines, ",\"lines\":%zu,\"limit\":%.6g,\"of_limit\":%.6g",
                      limit.bytes, rate(limit.ns), limit.ns / std::max(ns, 1e-3));
    JsonLine line("figure");
    line.text("name", std::string(call) + " " + cell.row.name);
    line.number("at", static_cast<double>(cell.at)).text("unit", "GB/s").text("better", "higher");
    line.number("value", rate(ns)).number("p10", rate(samples.quantile(0.9)));
    line.number("p90", rate(samples.quantile(0.1)));
    line.number("samples", static_cast<double>(samples.count()));
    line.raw("labels", "{\"call\":" + json_quoted(call) +
                           ",\"layout\":" + json_quoted(cell.row.name) +
                           ",\"group\":" + json_quoted(cell.row.group) + "}");
    line.raw("detail", std::string(detail) + lines + "}").print();
}

void print_problem(const Cell& cell, const char* kind, const char* why) {
    JsonLine line(kind);
    line.text("name", cell.row.name).number("at", static_cast<double>(cell.at));
    line.text("why", why).print();
}

}  // namespace vecmpi::bench
