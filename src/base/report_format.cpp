// SPDX-License-Identifier: BSD-3-Clause
// The report of VECMPI_REPORT, as text and as JSON. Pure: the caller sums, prints and writes.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/api.hpp"
#include "counter_snapshot.hpp"

namespace vecmpi::base {
namespace {

struct CallRow {
    std::string name;
    size_t path;
    uint64_t calls;
    uint64_t bytes;
    uint64_t ns;
    uint64_t largest_ns;  // on one rank
};

uint64_t value_at(const std::vector<uint64_t>& numbers, size_t index) noexcept {
    return index < numbers.size() ? numbers[index] : 0;
}

std::string call_name(const ReportFacts& facts, size_t call) {
    bool named = call < facts.call_names.size() && facts.call_names[call] != nullptr;
    return named ? facts.call_names[call] : "call " + std::to_string(call);
}

CallRow row_of(const ReportFacts& facts, const ReportNumbers& numbers, size_t call, size_t path) {
    const Path of = static_cast<Path>(path);
    return {call_name(facts, call),
            path,
            value_at(numbers.totals, calls_index(call, of)),
            value_at(numbers.totals, bytes_index(call, of)),
            value_at(numbers.totals, time_index(call, of)),
            value_at(numbers.largest, time_index(call, of))};
}

// Calls that ran: the longest first, then in the order of the function table.
std::vector<CallRow> call_rows(const ReportFacts& facts, const ReportNumbers& numbers) {
    std::vector<CallRow> rows;
    for (size_t call = 0; call < max_calls; ++call)
        for (size_t path = 0; path < number_of_paths; ++path) {
            if (value_at(numbers.totals, calls_index(call, static_cast<Path>(path))) != 0)
                rows.push_back(row_of(facts, numbers, call, path));
        }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const CallRow& a, const CallRow& b) { return a.ns > b.ns; });
    return rows;
}

__attribute__((format(printf, 2, 3))) void append(std::string& text, const char* format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text += line;
}

std::string counted(int number, const char* noun) {
    return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

// "12.3 %"; written by hand, since printf follows the program's locale.
std::string percent(uint64_t part, uint64_t whole) {
    if (whole == 0) return "-";
    const double share = static_cast<double>(part) / static_cast<double>(whole);
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): positive, and libm is not needed for it
    const auto tenths = static_cast<uint64_t>(share * 1000 + 0.5);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

// With several threads this is the sum over all of them, and may exceed the run.
void append_time(std::string& text, const ReportNumbers& numbers) {
    const uint64_t run = value_at(numbers.totals, run_time_index);
    const uint64_t in_mpi = value_at(numbers.totals, mpi_time_index);
    if (run == 0) return;
    text += "time in MPI calls: " + format_time(in_mpi) + " of " + format_time(run) +
            ", sums of all ranks (" + percent(in_mpi, run) + "); on one rank at most " +
            format_time(value_at(numbers.largest, mpi_time_index)) + " of " +
            format_time(value_at(numbers.largest, run_time_index)) + "\n";
    const uint64_t several = value_at(numbers.totals, several_threads_index);
    if (several != 0)
        text += "  thread time: several threads call MPI on " +
                counted(static_cast<int>(several), "rank") +
                ", so that 100 % is one thread in MPI all the time\n";
}

void append_paths(std::string& text, const std::vector<CallRow>& rows) {
    bool used[number_of_paths] = {};
    for (const CallRow& row : rows) used[row.path] = true;
    for (size_t path = 0; path < number_of_paths; ++path)
        if (used[path]) append(text, "  %s: %s\n", path_texts[path].name, path_texts[path].text);
}

constexpr size_t most_rows = 40;  // a screen; all stand in the JSON report

void append_calls(std::string& text, std::vector<CallRow> rows, uint64_t run_ns) {
    uint64_t rest_ns = 0;
    const size_t rest = rows.size() - std::min(rows.size(), most_rows);
    for (size_t i = rows.size() - rest; i < rows.size(); ++i) rest_ns += rows[i].ns;
    rows.resize(rows.size() - rest);
    size_t widest = 4;
    for (const CallRow& row : rows) widest = std::max(widest, row.name.size());
    const int width = static_cast<int>(std::min<size_t>(widest, 60));
    append(text, "  %-*s  %-10s  %12s  %10s  %8s  %7s  %11s\n", width, "call", "path", "calls",
           "bytes", "time", "of run", "on one rank");
    for (const CallRow& row : rows) {
        const std::string bytes = row.bytes == 0 ? "-" : format_bytes(row.bytes);
        append(text, "  %-*s  %-10s  %12llu  %10s  %8s  %7s  %11s\n", width, row.name.c_str(),
               path_texts[row.path].name, static_cast<unsigned long long>(row.calls), bytes.c_str(),
               format_time(row.ns).c_str(), percent(row.ns, run_ns).c_str(),
               format_time(row.largest_ns).c_str());
    }
    if (rest != 0)
        text += "  and " + counted(static_cast<int>(rest), "row") + " of less time each, " +
                format_time(rest_ns) + " together; VECMPI_REPORT=json:FILE has all\n";
    append_paths(text, rows);
}

void append_counters(std::string& text, const std::vector<uint64_t>& totals, CounterKind kind,
                     const char* title) {
    bool titled = false;
    for (size_t i = 0; i < number_of_events; ++i) {
        uint64_t value = value_at(totals, i);
        if (counter_texts[i].kind != kind || value == 0) continue;
        if (!titled) append(text, "%s\n", title);
        titled = true;
        append(text, "  %12llu  %s\n", static_cast<unsigned long long>(value),
               counter_texts[i].text);
    }
}

void append_json_calls(std::string& text, const std::vector<CallRow>& rows) {
    text += "  \"calls\": [";
    const char* separator = "\n";
    for (const CallRow& row : rows) {
        text += separator;
        text += "    {\"name\": " + quote_json(row.name) +
                ", \"path\": " + quote_json(path_texts[row.path].name) +
                ", \"calls\": " + std::to_string(row.calls) +
                ", \"bytes\": " + std::to_string(row.bytes) +
                ", \"time_ns\": " + std::to_string(row.ns) +
                ", \"time_ns_max\": " + std::to_string(row.largest_ns) + "}";
        separator = ",\n";
    }
    text += rows.empty() ? "],\n" : "\n  ],\n";
}

void append_json_time(std::string& text, const ReportNumbers& numbers) {
    text += ",\n  \"run_ns\": " + std::to_string(value_at(numbers.totals, run_time_index)) +
            ",\n  \"run_ns_max\": " + std::to_string(value_at(numbers.largest, run_time_index)) +
            ",\n  \"mpi_ns\": " + std::to_string(value_at(numbers.totals, mpi_time_index)) +
            ",\n  \"mpi_ns_max\": " + std::to_string(value_at(numbers.largest, mpi_time_index)) +
            ",\n  \"ranks_with_several_threads\": " +
            std::to_string(value_at(numbers.totals, several_threads_index));
}

// All of one kind, zeros too, so that a reader finds every name.
void append_json_counters(std::string& text, const std::vector<uint64_t>& totals, CounterKind kind,
                          const char* key) {
    text += std::string("  \"") + key + "\": {";
    const char* separator = "\n";
    for (size_t i = 0; i < number_of_events; ++i) {
        if (counter_texts[i].kind != kind) continue;
        text += separator;
        text += "    " + quote_json(counter_texts[i].name) +
                ": {\"count\": " + std::to_string(value_at(totals, i)) +
                ", \"text\": " + quote_json(counter_texts[i].text) + "}";
        separator = ",\n";
    }
    text += "\n  }";
}

}  // namespace

std::string format_summary(const ReportFacts& facts, const ReportNumbers& numbers) {
    std::string text = "vecmpi report: " + counted(facts.ranks, "rank") + " on " +
                       counted(facts.nodes, "node") + ", offload thread on " +
                       counted(facts.ranks_with_thread, "rank") + "\n";
    if (!facts.mpi_library.empty()) text += "  MPI library: " + facts.mpi_library + "\n";
    for (const std::string& note : facts.notes) text += "  " + note + "\n";
    append_time(text, numbers);
    std::vector<CallRow> rows = call_rows(facts, numbers);
    text += rows.empty() ? "no calls counted\n" : "calls, sums of all ranks, longest first\n";
    if (!rows.empty()) append_calls(text, rows, value_at(numbers.totals, run_time_index));
    append_counters(text, numbers.totals, CounterKind::event, "events");
    append_counters(text, numbers.totals, CounterKind::decline, "declined, with the reason");
    return text;
}

std::string format_json(const ReportFacts& facts, const ReportNumbers& numbers) {
    std::string text = "{\n  \"ranks\": " + std::to_string(facts.ranks) +
                       ",\n  \"nodes\": " + std::to_string(facts.nodes) +
                       ",\n  \"ranks_with_thread\": " + std::to_string(facts.ranks_with_thread) +
                       ",\n  \"mpi_library\": " + quote_json(facts.mpi_library) +
                       ",\n  \"notes\": [";
    const char* separator = "";
    for (const std::string& note : facts.notes) {
        text += separator + quote_json(note);
        separator = ", ";
    }
    text += "]";
    append_json_time(text, numbers);
    text += ",\n";
    append_json_calls(text, call_rows(facts, numbers));
    append_json_counters(text, numbers.totals, CounterKind::event, "events");
    text += ",\n";
    append_json_counters(text, numbers.totals, CounterKind::decline, "declines");
    return text + "\n}\n";
}

}  // namespace vecmpi::base
