// SPDX-License-Identifier: BSD-3-Clause
// The report of VECMPI_REPORT, as text and as JSON. Pure: the caller sums, prints and writes.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/api.hpp"
#include "counter_snapshot.hpp"
#include "report_advice.hpp"
#include "report_words.hpp"

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

// ---- the head: was it on, what did it serve, where did the time go, what to do next ------------

// What it did inside the library's own calls as well.
constexpr struct {
    Counter counter;
    const char* words;
} done_within[] = {{Counter::elements_reduced, "elements reduced by its kernels"},
                   {Counter::plan_messages, "messages packed by plans"},
                   {Counter::plan_buffers, "buffers packed by plans"},
                   {Counter::plan_transfers, "one-sided transfers packed by plans"}};

void append_served(std::string& text, const ReportFacts& facts, const ReportNumbers& numbers,
                   const std::vector<CallRow>& rows) {
    uint64_t calls = 0, own = 0, own_ns = 0;
    for (const CallRow& row : rows) {
        calls += row.calls;
        if (!is_own_way(static_cast<Path>(row.path))) continue;
        own += row.calls;
        own_ns += row.ns;
    }
    std::string items;
    const auto add = [&](const std::string& item) { items += (items.empty() ? "" : "; ") + item; };
    if (own != 0)
        add(std::to_string(own) + " of " + counted(calls, "call") + " in ways of its own (" +
            format_time(own_ns) + ")");
    for (const auto& [counter, words] : done_within)
        if (const uint64_t number = value_at(numbers.totals, event_index(counter)); number != 0)
            add(std::to_string(number) + " " + words);
    if (facts.waits_rest && facts.crowded_ranks != 0)
        add("ranks that wait give their CPU away, on " +
            counted(static_cast<uint64_t>(facts.crowded_ranks), "rank"));
    text +=
        "  served: " + (items.empty() ? "nothing, all calls were the library's own" : items) + "\n";
}

// The program's own time, and the functions with most time, whatever served them.
void append_longest(std::string& text, const std::vector<CallRow>& rows, uint64_t run_ns,
                    uint64_t mpi_ns) {
    constexpr size_t most_named = 4;
    std::vector<std::pair<std::string, uint64_t>> times;
    for (const CallRow& row : rows) {
        const auto same = [&](const auto& time) { return time.first == row.name; };
        const auto found = std::find_if(times.begin(), times.end(), same);
        if (found == times.end())
            times.emplace_back(row.name, row.ns);
        else
            found->second += row.ns;
    }
    std::stable_sort(times.begin(), times.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    times.resize(std::min(times.size(), most_named));
    const uint64_t own_ns = run_ns - std::min(run_ns, mpi_ns);
    text += "    of the run: the program itself " + percent(own_ns, run_ns);
    for (const auto& [name, ns] : times)
        if (ns != 0) text += ", " + name + " " + percent(ns, run_ns);
    text += "\n";
}

// With several threads this is the sum over all of them, and may exceed the run.
void append_time(std::string& text, const ReportNumbers& numbers,
                 const std::vector<CallRow>& rows) {
    const uint64_t run = value_at(numbers.totals, run_time_index);
    const uint64_t in_mpi = value_at(numbers.totals, mpi_time_index);
    if (run == 0) return;
    text += "  time in MPI calls: " + format_time(in_mpi) + " of " + format_time(run) +
            ", sums of all ranks (" + percent(in_mpi, run) + "); on one rank at most " +
            format_time(value_at(numbers.largest, mpi_time_index)) + " of " +
            format_time(value_at(numbers.largest, run_time_index)) + "\n";
    append_longest(text, rows, run, in_mpi);
    const uint64_t several = value_at(numbers.totals, several_threads_index);
    if (several != 0)
        text += "    thread time: several threads call MPI on " + counted(several, "rank") +
                ", so that 100 % is one thread in MPI all the time\n";
}

void append_advices(std::string& text, const std::vector<std::string>& found) {
    for (const std::string& advice : found) text += "  next: " + advice + "\n";
    if (found.empty()) text += "  next: nothing that these counts show\n";
}

void append_head(std::string& text, const ReportFacts& facts, const ReportNumbers& numbers,
                 const std::vector<CallRow>& rows) {
    text += "vecmpi report: " + counted(static_cast<uint64_t>(facts.ranks), "rank") + " on " +
            counted(static_cast<uint64_t>(facts.nodes), "node") +
            ", vecmpi was on; offload thread on " +
            counted(static_cast<uint64_t>(facts.ranks_with_thread), "rank") + "\n";
    if (!rows.empty()) {
        append_served(text, facts, numbers, rows);
        append_time(text, numbers, rows);
        append_advices(text, advices(facts, numbers));
    }
    if (!facts.mpi_library.empty()) text += "  MPI library: " + facts.mpi_library + "\n";
    for (const std::string& note : facts.notes) text += "  " + note + "\n";
}

// ---- calls -------------------------------------------------------------------------------------

// A screen is some 60 lines. All rows stand in the JSON report.
constexpr size_t most_paths = 4, most_rows = 10, most_types = 4, most_events = 10,
                 most_declines = 6;

std::string more_rows(size_t number) {
    return "and " + counted(number, "more row") + ": VECMPI_REPORT=json:FILE has all";
}

// Of the paths with most time what they are.
void append_paths(std::string& text, const std::vector<CallRow>& rows) {
    struct PathTime {
        size_t path;
        bool used = false;
        uint64_t ns = 0;
    };
    std::vector<PathTime> paths;
    for (size_t path = 0; path < number_of_paths; ++path) paths.push_back({path});
    for (const CallRow& row : rows) {
        paths[row.path].used = true;
        paths[row.path].ns += row.ns;
    }
    std::erase_if(paths, [](const PathTime& path) { return !path.used; });
    std::stable_sort(paths.begin(), paths.end(),
                     [](const PathTime& a, const PathTime& b) { return a.ns > b.ns; });
    paths.resize(std::min(paths.size(), most_paths));
    for (const PathTime& path : paths)
        append(text, "  %s: %s\n", path_texts[path.path].name, path_texts[path.path].text);
}

void append_calls(std::string& text, std::vector<CallRow> rows, uint64_t run_ns) {
    const size_t rest = rows.size() - std::min(rows.size(), most_rows);
    uint64_t rest_ns = 0;
    for (size_t i = rows.size() - rest; i < rows.size(); ++i) rest_ns += rows[i].ns;
    rows.resize(rows.size() - rest);
    size_t widest = 4;
    for (const CallRow& row : rows) widest = std::max(widest, row.name.size());
    const int width = static_cast<int>(std::min<size_t>(widest, 60));
    append(text, "  %-*s  %-10s  %12s  %10s  %10s  %7s  %11s\n", width, "call", "path", "calls",
           "bytes", "time", "of run", "on one rank");
    for (const CallRow& row : rows) {
        const std::string bytes = row.bytes == 0 ? "-" : format_bytes(row.bytes);
        append(text, "  %-*s  %-10s  %12llu  %10s  %10s  %7s  %11s\n", width, row.name.c_str(),
               path_texts[row.path].name, static_cast<unsigned long long>(row.calls), bytes.c_str(),
               format_time(row.ns).c_str(), percent(row.ns, run_ns).c_str(),
               format_time(row.largest_ns).c_str());
    }
    if (rest != 0) text += "  " + more_rows(rest) + "; " + format_time(rest_ns) + " together\n";
    append_paths(text, rows);
}

struct CountRow {
    const char* words;
    uint64_t value;
};

// Events stay in the order of their table, which goes by theme; declines come by number.
void append_counters(std::string& text, const std::vector<uint64_t>& totals, CounterKind kind,
                     const char* title, size_t most) {
    std::vector<CountRow> rows;
    for (size_t i = 0; i < number_of_events; ++i)
        if (counter_texts[i].kind == kind && value_at(totals, i) != 0)
            rows.push_back({counter_texts[i].text, value_at(totals, i)});
    if (rows.empty()) return;
    if (kind == CounterKind::decline)
        std::stable_sort(rows.begin(), rows.end(),
                         [](const CountRow& a, const CountRow& b) { return a.value > b.value; });
    text += std::string(title) + "\n";
    for (size_t i = 0; i < std::min(rows.size(), most); ++i)
        append(text, "  %12llu  %s\n", static_cast<unsigned long long>(rows[i].value),
               rows[i].words);
    if (rows.size() > most) text += "  " + more_rows(rows.size() - most) + "\n";
}

// ---- derived datatypes -------------------------------------------------------------------------

uint64_t times_of(const DatatypeUse& use) noexcept { return use.by_plan + times_by_library(use); }

// Those that were used, most bytes first.
std::vector<DatatypeUse> datatype_rows(const ReportNumbers& numbers) {
    std::vector<DatatypeUse> rows;
    for (const DatatypeUse& use : numbers.datatypes)
        if (times_of(use) != 0) rows.push_back(use);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const DatatypeUse& a, const DatatypeUse& b) { return a.bytes > b.bytes; });
    return rows;
}

// The reasons why the library moved them, the most frequent first.
std::vector<WhyLibrary> reasons_of(const DatatypeUse& use) {
    std::vector<WhyLibrary> reasons;
    for (size_t why = 0; why < number_of_reasons; ++why)
        if (use.by_library[why] != 0) reasons.push_back(static_cast<WhyLibrary>(why));
    const auto times = [&](WhyLibrary why) { return use.by_library[static_cast<size_t>(why)]; };
    std::stable_sort(reasons.begin(), reasons.end(),
                     [&](WhyLibrary a, WhyLibrary b) { return times(a) > times(b); });
    return reasons;
}

void append_datatype(std::string& text, const DatatypeUse& use) {
    constexpr size_t most_reasons = 3;
    append(text, "  %10llu  %10s  %10llu  %10llu  %s\n",
           static_cast<unsigned long long>(times_of(use)), format_bytes(use.bytes).c_str(),
           static_cast<unsigned long long>(use.by_plan),
           static_cast<unsigned long long>(times_by_library(use)), use.made_as);
    std::vector<WhyLibrary> reasons = reasons_of(use);
    if (reasons.empty()) return;
    reasons.resize(std::min(reasons.size(), most_reasons));
    const char* separator = "              by the library: ";
    for (const WhyLibrary why : reasons) {
        append(text, "%s%llu %s", separator,
               static_cast<unsigned long long>(use.by_library[static_cast<size_t>(why)]),
               text_of(why).text);
        separator = "; ";
    }
    text += "\n";
}

void append_datatypes(std::string& text, const std::vector<DatatypeUse>& rows) {
    if (rows.empty()) return;
    text += "derived datatypes, sums of all ranks, most bytes first\n";
    append(text, "  %10s  %10s  %10s  %10s  %s\n", "times", "bytes", "by plan", "by library",
           "made as");
    DatatypeUse rest{};
    for (size_t i = 0; i < rows.size(); ++i) {
        if (i < most_types) {
            append_datatype(text, rows[i]);
            continue;
        }
        rest.bytes += rows[i].bytes;
        rest.by_plan += rows[i].by_plan;
        rest.by_library[0] += times_by_library(rows[i]);
    }
    if (rows.size() <= most_types) return;
    append(text, "  %10llu  %10s  %10llu  %10llu  and %zu more; VECMPI_REPORT=json:FILE has all\n",
           static_cast<unsigned long long>(times_of(rest)), format_bytes(rest.bytes).c_str(),
           static_cast<unsigned long long>(rest.by_plan),
           static_cast<unsigned long long>(rest.by_library[0]), rows.size() - most_types);
}

std::string json_reasons(const DatatypeUse& use) {
    std::string text = "{";
    const char* separator = "";
    for (const WhyLibrary why : reasons_of(use)) {
        text += separator + quote_json(text_of(why).name) + ": " +
                std::to_string(use.by_library[static_cast<size_t>(why)]);
        separator = ", ";
    }
    return text + "}";
}

void append_json_datatypes(std::string& text, const std::vector<DatatypeUse>& rows) {
    text += "  \"datatypes\": [";
    const char* separator = "\n";
    for (const DatatypeUse& use : rows) {
        text += separator;
        text += "    {\"made_as\": " + quote_json(use.made_as) +
                ", \"times\": " + std::to_string(times_of(use)) +
                ", \"bytes\": " + std::to_string(use.bytes) +
                ", \"by_plan\": " + std::to_string(use.by_plan) +
                ", \"by_library\": " + std::to_string(times_by_library(use)) +
                ", \"why_library\": " + json_reasons(use) + "}";
        separator = ",\n";
    }
    text += rows.empty() ? "],\n" : "\n  ],\n";
}

// ---- JSON --------------------------------------------------------------------------------------

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

void append_json_texts(std::string& text, const char* key, const std::vector<std::string>& values) {
    text += std::string(",\n  \"") + key + "\": [";
    const char* separator = "";
    for (const std::string& value : values) {
        text += separator + quote_json(value);
        separator = ", ";
    }
    text += "]";
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
    std::string text;
    const std::vector<CallRow> rows = call_rows(facts, numbers);
    append_head(text, facts, numbers, rows);
    text += rows.empty() ? "no calls counted\n" : "calls, sums of all ranks, longest first\n";
    if (!rows.empty()) append_calls(text, rows, value_at(numbers.totals, run_time_index));
    append_datatypes(text, datatype_rows(numbers));
    append_counters(text, numbers.totals, CounterKind::event, "events", most_events);
    append_counters(text, numbers.totals, CounterKind::decline, "declined, with the reason",
                    most_declines);
    if (!facts.file.empty()) text += "all of it: " + facts.file + "\n";
    return text;
}

std::string format_json(const ReportFacts& facts, const ReportNumbers& numbers) {
    std::string text = "{\n  \"ranks\": " + std::to_string(facts.ranks) +
                       ",\n  \"nodes\": " + std::to_string(facts.nodes) +
                       ",\n  \"ranks_with_thread\": " + std::to_string(facts.ranks_with_thread) +
                       ",\n  \"crowded_ranks\": " + std::to_string(facts.crowded_ranks) +
                       ",\n  \"mpi_library\": " + quote_json(facts.mpi_library);
    append_json_texts(text, "notes", facts.notes);
    append_json_texts(text, "next", advices(facts, numbers));
    append_json_time(text, numbers);
    text += ",\n";
    append_json_calls(text, call_rows(facts, numbers));
    append_json_datatypes(text, datatype_rows(numbers));
    append_json_counters(text, numbers.totals, CounterKind::event, "events");
    text += ",\n";
    append_json_counters(text, numbers.totals, CounterKind::decline, "declines");
    return text + "\n}\n";
}

}  // namespace vecmpi::base
