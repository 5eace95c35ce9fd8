// SPDX-License-Identifier: BSD-3-Clause
// The report of VECMPI_REPORT, as text and as JSON. Pure: the caller sums, prints and writes.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "report_layout.hpp"
#include "vecmpi/base.hpp"

namespace vecmpi {
namespace {

struct CallRow {
    std::string name;
    size_t path;
    uint64_t calls;
    uint64_t bytes;
};

uint64_t value_at(const std::vector<uint64_t>& totals, size_t index) noexcept {
    return index < totals.size() ? totals[index] : 0;
}

std::string call_name(const ReportFacts& facts, size_t call) {
    bool named = call < facts.call_names.size() && facts.call_names[call] != nullptr;
    return named ? facts.call_names[call] : "call " + std::to_string(call);
}

// What ran at all, in the order of the function table.
std::vector<CallRow> call_rows(const ReportFacts& facts, const std::vector<uint64_t>& totals) {
    std::vector<CallRow> rows;
    for (size_t call = 0; call < max_calls; ++call)
        for (size_t path = 0; path < number_of_paths; ++path) {
            uint64_t calls = value_at(totals, calls_index(call, static_cast<Path>(path)));
            uint64_t bytes = value_at(totals, bytes_index(call, static_cast<Path>(path)));
            if (calls != 0) rows.push_back({call_name(facts, call), path, calls, bytes});
        }
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

void append_calls(std::string& text, const std::vector<CallRow>& rows) {
    size_t widest = 4;
    bool path_used[number_of_paths] = {};
    for (const CallRow& row : rows) {
        widest = std::max(widest, row.name.size());
        path_used[row.path] = true;
    }
    int width = static_cast<int>(std::min<size_t>(widest, 60));
    append(text, "  %-*s  %-9s  %12s  %12s\n", width, "call", "path", "calls", "bytes");
    for (const CallRow& row : rows) {
        std::string bytes = row.bytes == 0 ? "-" : format_bytes(row.bytes);
        append(text, "  %-*s  %-9s  %12llu  %12s\n", width, row.name.c_str(),
               path_texts[row.path].name, static_cast<unsigned long long>(row.calls),
               bytes.c_str());
    }
    for (size_t path = 0; path < number_of_paths; ++path)
        if (path_used[path])
            append(text, "  %s: %s\n", path_texts[path].name, path_texts[path].text);
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
                ", \"bytes\": " + std::to_string(row.bytes) + "}";
        separator = ",\n";
    }
    text += rows.empty() ? "],\n" : "\n  ],\n";
}

// All of one kind, zeros too: a reader need not know which names may be missing.
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

std::string format_summary(const ReportFacts& facts, const std::vector<uint64_t>& totals) {
    std::string text = "vecmpi report: " + counted(facts.ranks, "rank") + " on " +
                       counted(facts.nodes, "node") + ", offload thread on " +
                       counted(facts.ranks_with_thread, "rank") + "\n";
    if (!facts.mpi_library.empty()) text += "  MPI library: " + facts.mpi_library + "\n";
    for (const std::string& note : facts.notes) text += "  " + note + "\n";
    std::vector<CallRow> rows = call_rows(facts, totals);
    text += rows.empty() ? "no calls counted\n" : "calls, sum of all ranks\n";
    if (!rows.empty()) append_calls(text, rows);
    append_counters(text, totals, CounterKind::event, "events");
    append_counters(text, totals, CounterKind::decline, "declined, with the reason");
    return text;
}

std::string format_json(const ReportFacts& facts, const std::vector<uint64_t>& totals) {
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
    text += "],\n";
    append_json_calls(text, call_rows(facts, totals));
    append_json_counters(text, totals, CounterKind::event, "events");
    text += ",\n";
    append_json_counters(text, totals, CounterKind::decline, "declines");
    return text + "\n}\n";
}

}  // namespace vecmpi
