// SPDX-License-Identifier: BSD-3-Clause
// Printing of records. No measurement here.
#include "record.hpp"

#include <mpi.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "machine.hpp"

namespace vecmpi::bench {
namespace {

// After MPI_Finalize only the rank that was 0 comes here.
bool is_rank_0() {
    int finalized = 0, rank = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
}

JsonLine begin_figure(const Figure& figure, double value) {
    JsonLine line("figure");
    line.text("name", figure.name).number("at", figure.at).text("unit", figure.unit);
    line.text("better", figure.better).number("value", value);
    return line;
}

}  // namespace

std::string json_quoted(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return quoted + '"';
}

std::string json_list(const std::vector<std::string>& texts) {
    std::string list(1, '[');
    for (const std::string& text : texts) {
        if (list.size() > 1) list += ',';
        list += json_quoted(text);
    }
    return list += ']';
}

void print_threads() {
    if (!is_rank_0()) return;
    std::vector<std::string> threads;
    for (const ThreadPlace& place : read_threads())
        threads.push_back(place.name + ":" + place.cpus);
    JsonLine("threads").raw("rank_0", json_list(threads)).print();
}

JsonLine::JsonLine(const char* kind) : line_("{\"bench\":" + json_quoted(kind)) {}

JsonLine& JsonLine::raw(const char* name, const std::string& json) {
    line_.append(",").append(json_quoted(name)).append(":").append(json);
    return *this;
}

JsonLine& JsonLine::text(const char* name, const std::string& value) {
    return raw(name, json_quoted(value));
}

JsonLine& JsonLine::number(const char* name, double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", std::isfinite(value) ? value : 0.0);
    return raw(name, text);
}

void JsonLine::print() const {
    const std::string whole = line_ + "}\n";
    if (::write(STDOUT_FILENO, whole.data(), whole.size()) < 0) std::perror("vecmpi-bench-ranks");
}

void print_figure(const Figure& figure, const Samples& samples, double subtract) {
    if (!is_rank_0()) return;
    JsonLine line = begin_figure(figure, samples.midmean() - subtract);
    line.number("p10", samples.quantile(0.1) - subtract);
    line.number("p90", samples.quantile(0.9) - subtract);
    line.number("samples", static_cast<double>(samples.count()));
    line.print();
}

void print_figure(const Figure& figure, double value, const std::string& detail_json) {
    if (!is_rank_0()) return;
    JsonLine line = begin_figure(figure, value);
    if (!detail_json.empty()) line.raw("detail", detail_json);
    line.print();
}

}  // namespace vecmpi::bench
