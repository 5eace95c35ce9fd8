// SPDX-License-Identifier: BSD-3-Clause
// Counters and the report: what is counted, what a person reads, and that the JSON is whole.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/api.hpp"
#include "base/counter_snapshot.hpp"
#include "base/report_advice.hpp"
#include "base/ticks.hpp"

using namespace vecmpi;
using namespace vecmpi::base;

namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// What JSON needs at the least: brackets and quotes that match, no bare control character in a
// string.
bool is_balanced(const std::string& json) {
    std::string open;
    bool quoted = false;
    for (size_t i = 0; i < json.size(); ++i) {
        char letter = json[i];
        if (quoted) {
            if (static_cast<unsigned char>(letter) < ' ') return false;
            if (letter == '\\') ++i;
            if (letter == '"') quoted = false;
            continue;
        }
        if (letter == '"') quoted = true;
        if (letter == '{' || letter == '[') open += letter;
        if (letter != '}' && letter != ']') continue;
        if (open.empty() || open.back() != (letter == '}' ? '{' : '[')) return false;
        open.pop_back();
    }
    return open.empty() && !quoted;
}

// Counts for the report while it lives.
class Counting {
  public:
    Counting() {
        begin_report();
        before_ = counter_snapshot();
    }
    ~Counting() {
        empty_report();
        count_for_report(false);
    }
    std::vector<uint64_t> grown() const {
        std::vector<uint64_t> now = counter_snapshot();
        for (size_t i = 0; i < now.size(); ++i) now[i] -= before_[i];
        return now;
    }

  private:
    std::vector<uint64_t> before_;
};

ReportFacts facts_of_two_calls() {
    ReportFacts facts;
    facts.ranks = 4;
    facts.nodes = 2;
    facts.ranks_with_thread = 1;
    facts.mpi_library = "MPICH Version: 4.0.2";
    facts.call_names = {"MPI_Send", nullptr, "MPI_Allreduce"};
    facts.notes = {"offload thread off: VECMPI_OFFLOAD=off"};
    return facts;
}

ReportNumbers no_numbers() {
    const std::vector<uint64_t> zeros(snapshot_length);
    return {zeros, zeros};
}

}  // namespace

TEST_CASE("Nothing is counted until the report is asked for", "[base][report]") {
    auto before = counter_snapshot();
    count(Counter::issued_inline);
    { const CallTimer timer(3, Path::direct, true); }
    CHECK(counter_snapshot() == before);
}

TEST_CASE("Counters add up over threads", "[base][report]") {
    const Counting on;
    auto work = [] {
        for (int i = 0; i < 1000; ++i) {
            count(Counter::segments_issued, 4);
            CallTimer timer(7, Path::library, true);
            count_call(7, Path::segmented, 10);
            timer.add_bytes(10);
            const CallTimer inner(max_calls - 1, Path::library, true);
        }
    };
    std::thread other(work);
    work();
    other.join();
    { const CallTimer beyond_the_table(max_calls, Path::library, true); }
    { const CallTimer not_the_programs(8, Path::library, false); }
    count_event(Counter::number_of_counters, 1);
    auto after = on.grown();
    CHECK(after[event_index(Counter::segments_issued)] == 8000);
    CHECK(after[calls_index(7, Path::segmented)] == 2000);
    CHECK(after[bytes_index(7, Path::segmented)] == 20000);
    CHECK(after[calls_index(max_calls - 1, Path::library)] == 2000);
    CHECK(after[bytes_index(max_calls - 1, Path::library)] == 0);
    uint64_t calls = 0;
    for (size_t i = number_of_events; i < after_calls; i += numbers_of_call) calls += after[i];
    CHECK(calls == 4000);
    CHECK(counter_snapshot()[several_threads_index] == 1);
}

TEST_CASE("A call's path is the last in order of those that had a part in it", "[base][report]") {
    const Counting on;
    const auto calls = [&](size_t call, Path path) { return on.grown()[calls_index(call, path)]; };
    {
        const CallTimer timer(20, Path::library, true);
        count_call(20, Path::scattered, 0);
        count_call(20, Path::direct, 0);
        const CallTimer nested(21, Path::completion, true);
        count_call(22, Path::inline_issue, 0);
    }
    CHECK(calls(20, Path::scattered) == 1);
    CHECK(calls(21, Path::completion) == 1);
    CHECK(calls(22, Path::inline_issue) == 0);  // part of another call
    { const CallTimer timer(20, Path::library, true); }
    CHECK(calls(20, Path::library) == 1);  // nothing is left of the call before
}

TEST_CASE("A nested call takes its time for itself", "[base][report]") {
    const Counting on;
    const auto began = std::chrono::steady_clock::now();
    {
        const CallTimer outer(30, Path::library, true);
        {
            const CallTimer inner(31, Path::library, true);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        const CallTimer of_library(32, Path::library, false);
    }
    const auto ns = static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
    auto after = on.grown();
    const uint64_t outer = after[time_index(30, Path::library)];
    const uint64_t inner = after[time_index(31, Path::library)];
    CHECK(inner >= 19'000'000);
    CHECK(outer + inner <= ns + ns / 100);  // once, and in nanoseconds
    CHECK(after[mpi_time_index] == outer + inner);
    CHECK(after[calls_index(32, Path::library)] == 0);
}

TEST_CASE("A call that is left without its end does no harm", "[base][report]") {
    const Counting on;
    alignas(CallTimer) unsigned char left[sizeof(CallTimer)];
    {
        const CallTimer outer(33, Path::library, true);
        new (left) CallTimer(34, Path::library, true);  // longjmp: no destructor
        count_call(34, Path::on_node, 0);
    }
    { const CallTimer next(35, Path::library, true); }
    auto after = on.grown();
    CHECK(after[calls_index(34, Path::library)] + after[calls_index(34, Path::on_node)] == 0);
    CHECK(after[calls_index(35, Path::library)] == 1);
}

TEST_CASE("MPI_Pcontrol's sections", "[base][report]") {
    const Counting on;
    const auto work = [] {
        count(Counter::plans);
        const CallTimer timer(40, Path::direct, true);
    };
    const auto counted = [&] { return on.grown()[calls_index(40, Path::direct)]; };
    work();
    count_for_report(false);
    count_for_report(false);
    work();
    CHECK(counted() == 1);
    const uint64_t run = counter_snapshot()[run_time_index];
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    // Stands, but for the speed of the ticks, which is known better now.
    CHECK(counter_snapshot()[run_time_index] < run + 1'000'000);
    count_for_report(true);
    work();
    CHECK(counted() == 2);
    CHECK(on.grown()[event_index(Counter::plans)] == 2);
    {
        const CallTimer begun_before(41, Path::direct, true);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        empty_report();
    }
    const auto emptied = counter_snapshot();
    CHECK(emptied[calls_index(40, Path::direct)] == 0);
    CHECK(emptied[event_index(Counter::plans)] == 0);
    CHECK(emptied[calls_index(41, Path::direct)] == 1);
    CHECK(emptied[time_index(41, Path::direct)] <= emptied[run_time_index]);
}

TEST_CASE("MPI_Pcontrol of several threads, while others count", "[base][report]") {
    const Counting on;
    constexpr int calls = 2000;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([] {
            for (int made = 0; made < calls; ++made) {
                count(Counter::plans);
                CallTimer timer(50, Path::direct, true);
                timer.add_bytes(1);
            }
        });
        threads.emplace_back([] {
            for (int turn = 0; turn < 60; ++turn) {
                count_for_report(turn % 2 != 0);
                count_for_tools(turn % 2 == 0);
                if (turn % 20 == 19) empty_report();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    const auto mixed = counter_snapshot();
    CHECK(mixed[calls_index(50, Path::direct)] <= 2 * calls);
    CHECK(mixed[event_index(Counter::plans)] <= 2 * calls);
    empty_report();
    count_for_report(true);
    { const CallTimer timer(50, Path::direct, true); }
    CHECK(counter_snapshot()[calls_index(50, Path::direct)] == 1);
    count(Counter::plans);
    const uint64_t for_tools = counted_for_tools(Counter::plans);
    count(Counter::plans);
    CHECK(counted_for_tools(Counter::plans) == for_tools);  // as often off as on
}

TEST_CASE("What tools count is another matter", "[base][report]") {
    const uint64_t before = counted_for_tools(Counter::plans);
    count(Counter::plans);
    CHECK(counted_for_tools(Counter::plans) == before);
    count_for_tools(true);
    count_for_tools(true);
    count(Counter::plans, 3);
    count_for_tools(false);
    count(Counter::plans);
    empty_report();
    CHECK(counted_for_tools(Counter::plans) == before + 4);
    count_for_tools(false);
    count(Counter::plans);
    CHECK(counted_for_tools(Counter::plans) == before + 4);
    CHECK(counter_snapshot()[event_index(Counter::plans)] == 0);
}

TEST_CASE("A reading of both clocks is one that nothing came between", "[base][report]") {
    // Ticks of 2 ns; all looks but the sixth lose the CPU between tick and clock, or after.
    uint64_t ns = 1000;
    int look = 0, asked = 0;
    const auto ticks = [&] {
        if (++asked % 2 == 0 && look % 2 == 0 && look != 6) ns += 3'000'000;
        return (ns += 10) / 2;
    };
    const auto clock = [&] {
        if (++look % 2 != 0) ns += 5'000'000;
        return ns += 10;
    };
    const ClockReading reading = read_closely(ticks, clock);
    CHECK(look == 8);
    CHECK((reading.ticks * 2 <= reading.ns + 10 && reading.ns <= reading.ticks * 2 + 10));
}

TEST_CASE("Ticks to nanoseconds", "[base][report]") {
    CHECK(ticks_to_ns(100, {1000, 50}, {3000, 1050}) == 50);
    CHECK(ticks_to_ns(3'000'000'000'000, {0, 0}, {3'000'000'000, 1'000'000'000}) ==
          1'000'000'000'000);
    CHECK(ticks_to_ns(100, {1000, 50}, {1000, 1050}) == 0);
    CHECK(ticks_to_ns(100, {1000, 50}, {900, 1050}) == 0);
    CHECK(ticks_to_ns(100, {1000, 50}, {1100, 50}) == 0);
}

TEST_CASE("Times as a reader sees them", "[base][report]") {
    CHECK(format_time(0) == "0 ns");
    CHECK(format_time(999) == "999 ns");
    CHECK(format_time(1000) == "1.00 us");
    CHECK(format_time(1'059'999) == "1.05 ms");
    CHECK(format_time(12'345'678) == "12.3 ms");
    CHECK(format_time(999'999'999) == "999 ms");
    CHECK(format_time(123'456'789'000'000'000) == "123456789 s");
}

TEST_CASE("The summary shows what is not zero", "[base][report]") {
    ReportNumbers numbers = no_numbers();
    std::vector<uint64_t>& totals = numbers.totals;
    totals[calls_index(2, Path::segmented)] = 12;
    totals[bytes_index(2, Path::segmented)] = 48 << 20;
    totals[time_index(2, Path::segmented)] = 1'500'000'000;
    numbers.largest[time_index(2, Path::segmented)] = 900'000'000;
    totals[calls_index(0, Path::library)] = 5;
    totals[time_index(0, Path::library)] = 2'000'000'000;
    totals[calls_index(1, Path::direct)] = 1;
    totals[run_time_index] = 40'000'000'000;
    totals[mpi_time_index] = 3'500'000'000;
    numbers.largest[mpi_time_index] = 1'250'000'000;
    numbers.largest[run_time_index] = 10'000'000'000;
    totals[event_index(Counter::segments_issued)] = 96;
    totals[event_index(Counter::decline_small)] = 7;
    std::string text = format_summary(facts_of_two_calls(), numbers);
    CHECK(text.starts_with(
        "vecmpi report: 4 ranks on 2 nodes, vecmpi was on; offload thread on 1 rank\n"
        "  served: 12 of 18 calls in ways of its own (1.50 s)\n"
        "  time in MPI calls: 3.50 s of 40.0 s, sums of all ranks (8.8 %); on one rank at most "
        "1.25 s of 10.0 s\n"
        "    of the run: the program itself 91.3 %, MPI_Send 5.0 %, MPI_Allreduce 3.8 %\n"
        "  next: nothing that these counts show\n"));
    CHECK(contains(text, "  MPI library: MPICH Version: 4.0.2\n"));
    CHECK(contains(text, "  offload thread off: VECMPI_OFFLOAD=off\n"));
    CHECK_FALSE(contains(text, "thread time"));
    CHECK(contains(
        text,
        "longest first\n"
        "  call           path               calls       bytes        time   of run  on one rank\n"
        "  MPI_Send       library                5           -      2.00 s    5.0 %         0 ns\n"
        "  MPI_Allreduce  segmented             12      48 MiB      1.50 s    3.8 %       900 ms\n"
        "  call 1         direct                 1           -        0 ns    0.0 %         0 "
        "ns\n"));
    CHECK_FALSE(contains(text, "more row"));
    CHECK_FALSE(contains(text, "all of it"));
    CHECK(contains(text, "events\n            96  segments issued\n"));
    CHECK(contains(text,
                   "declined, with the reason\n             7  collective too small to split\n"));
    CHECK(contains(text, "  segmented: "));
    CHECK_FALSE(contains(text, "queued"));
    CHECK_FALSE(contains(text, "decline_"));
}

TEST_CASE("The summary of nothing says so", "[base][report]") {
    for (size_t length : {size_t{0}, size_t{1}, snapshot_length}) {
        const std::vector<uint64_t> zeros(length);
        std::string text = format_summary(ReportFacts(), {zeros, zeros});
        CHECK(text ==
              "vecmpi report: 1 rank on 1 node, vecmpi was on; offload thread on 0 ranks\n"
              "no calls counted\n");
    }
}

TEST_CASE("The summary of many rows and threads is still a summary", "[base][report]") {
    ReportNumbers numbers = no_numbers();
    for (size_t call = 0; call < 200; ++call) {
        numbers.totals[calls_index(call, Path::direct)] = 1;
        numbers.totals[time_index(call, Path::direct)] = 1000 * (call + 1);
    }
    numbers.totals[run_time_index] = 1'000'000;
    numbers.totals[several_threads_index] = 3;
    const std::string text = format_summary(facts_of_two_calls(), numbers);
    CHECK(
        contains(text, "  and 190 more rows: VECMPI_REPORT=json:FILE has all; 18.1 ms together\n"));
    CHECK(contains(text, "  thread time: several threads call MPI on 3 ranks"));
    CHECK(text.find("call 199 ") < text.find("call 190 "));
    CHECK_FALSE(contains(text, "call 189 "));
}

namespace {

// A number that differs from rank to rank and is the same in every run.
uint64_t scattered(uint64_t rank, uint64_t salt) {
    uint64_t value = (rank * 0x9e3779b97f4a7c15ULL) ^ (salt * 0xbf58476d1ce4e5b9ULL);
    value ^= value >> 29;
    return value * 0x94d049bb133111ebULL >> 40;
}

// Ranks that have little in common: other functions, paths, datatypes, events; an hour each.
ReportNumbers numbers_of_ranks(uint64_t ranks) {
    ReportNumbers numbers = no_numbers();
    DatatypeUses all{};
    for (uint64_t rank = 0; rank < ranks; ++rank) {
        std::vector<uint64_t> mine(snapshot_length);
        for (uint64_t row = 0; row < 20; ++row) {
            const size_t call = scattered(rank, row) % 300;
            const auto path = static_cast<Path>(scattered(rank, row + 20) % number_of_paths);
            mine[calls_index(call, path)] = scattered(rank, row + 40);
            mine[bytes_index(call, path)] = scattered(rank, row + 60) << 24;
            mine[time_index(call, path)] = 100'000'000'000 + scattered(rank, row + 80);
        }
        for (size_t event = 0; event < number_of_events; ++event)
            mine[event] = scattered(rank, event + 100) % 3 == 0 ? scattered(rank, event + 200) : 0;
        mine[run_time_index] = 3'600'000'000'000;
        mine[mpi_time_index] = 2'000'000'000'000;
        mine[several_threads_index] = rank % 2;
        DatatypeUses uses{};
        uses.number = 2;
        std::snprintf(uses.rows[1].made_as, sizeof uses.rows[1].made_as, "vector(%u, 1, 2)",
                      static_cast<unsigned>(rank));
        uses.rows[1].bytes = 1 << 20;
        std::fill(std::begin(uses.rows[1].by_library), std::end(uses.rows[1].by_library), rank + 1);
        add_datatype_uses(uses, all);
        for (size_t i = 0; i < snapshot_length; ++i) {
            numbers.totals[i] += mine[i];
            numbers.largest[i] = std::max(numbers.largest[i], mine[i]);
        }
    }
    numbers.datatypes.assign(all.rows, all.rows + all.number);
    return numbers;
}

size_t lines_of(const std::string& text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

size_t longest_line(const std::string& text) {
    std::istringstream lines(text);
    size_t longest = 0;
    for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
    return longest;
}

}  // namespace

TEST_CASE("The summary of 10 000 ranks that do all there is is a screen", "[base][report]") {
    ReportFacts facts = facts_of_two_calls();
    facts.nodes = 1250;
    facts.notes = {"of the library's inside", "offload thread on", "profile"};
    facts.file = "/scratch/report.json";
    facts.waits_rest = true;
    const auto summary_of = [&](int ranks) {
        facts.ranks = facts.ranks_with_thread = facts.crowded_ranks = ranks;
        return format_summary(facts, numbers_of_ranks(static_cast<uint64_t>(ranks)));
    };
    constexpr size_t screen = 60;
    const std::string of_100 = summary_of(100), of_10000 = summary_of(10000);
    CHECK(lines_of(of_10000) <= screen);
    CHECK(lines_of(of_10000) == lines_of(of_100));
    CHECK(longest_line(of_10000) <= longest_line(of_100) + 20);
    CHECK(of_10000.ends_with("all of it: /scratch/report.json\n"));
    CHECK(contains(of_10000, "20000000 s of 36000000 s"));
}

TEST_CASE("The report is the same in every locale", "[base][report]") {
    ReportNumbers numbers = no_numbers();
    numbers.totals[calls_index(2, Path::direct)] = 1234567;
    numbers.totals[time_index(2, Path::direct)] = 12'345'678;
    numbers.totals[run_time_index] = 100'000'000;
    const std::string summary = format_summary(facts_of_two_calls(), numbers);
    const std::string json = format_json(facts_of_two_calls(), numbers);
    const char* set = nullptr;
    for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"})
        if (set == nullptr) set = std::setlocale(LC_ALL, name);
    CHECK(format_summary(facts_of_two_calls(), numbers) == summary);
    CHECK(format_json(facts_of_two_calls(), numbers) == json);
    std::setlocale(LC_ALL, "C");
    if (set == nullptr) WARN("no locale with decimal commas is installed");
    CHECK(contains(summary, "12.3 ms   12.3 %"));
}

TEST_CASE("The JSON report is whole", "[base][report]") {
    ReportFacts facts = facts_of_two_calls();
    facts.notes.push_back("a \"quoted\" \\ note\nwith \x01 and \xff and \xc3\xa9");
    ReportNumbers numbers = no_numbers();
    std::vector<uint64_t>& totals = numbers.totals;
    CHECK(is_balanced(format_json(facts, numbers)));
    totals[calls_index(2, Path::segmented)] = 12;
    totals[bytes_index(2, Path::segmented)] = 48 << 20;
    totals[calls_index(0, Path::inline_issue)] = UINT64_MAX;
    totals[time_index(2, Path::segmented)] = 12'345'678'901;
    numbers.largest[time_index(2, Path::segmented)] = 4'000'000'000;
    totals[run_time_index] = 99;
    numbers.largest[mpi_time_index] = 98;
    std::string json = format_json(facts, numbers);
    CHECK(is_balanced(json));
    CHECK(contains(json, R"({"name": "MPI_Allreduce", "path": "segmented", "calls": 12, "bytes": )"
                         R"(50331648, "time_ns": 12345678901, "time_ns_max": 4000000000})"));
    CHECK(contains(json, R"("path": "inline", "calls": 18446744073709551615)"));
    CHECK(contains(json, R"("run_ns": 99,)"));
    CHECK(contains(json, R"("mpi_ns_max": 98,)"));
    CHECK(contains(json, R"(a \"quoted\" \\ note\u000awith \u0001 and \ufffd and )"
                         "\xc3\xa9\""));
    CHECK(contains(json, R"("next": ["communication is 0.0 % of the run: )"));
    for (const CounterText& counter : counter_texts)
        CHECK(contains(json, quote_json(counter.name) + ": {"));
}

// ---- what to do next ---------------------------------------------------------------------------

namespace {

// 4 ranks on one node, which spend half of their time in MPI.
struct Run {
    static constexpr uint64_t ms = 1'000'000;
    ReportFacts facts = facts_of_two_calls();
    ReportNumbers numbers = no_numbers();

    Run() {
        facts.nodes = 1;
        facts.call_names = {"MPI_Send", "MPI_Waitall"};
        numbers.totals[run_time_index] = 4'000 * ms;
        numbers.largest[run_time_index] = 1'000 * ms;
        in_mpi(2'000, 600);
    }
    Run& with(Counter counter, uint64_t number) {
        numbers.totals[event_index(counter)] = number;
        return *this;
    }
    Run& waiting(uint64_t all_ms) {
        numbers.totals[time_index(1, Path::completion)] = all_ms * ms;
        return *this;
    }
    Run& in_mpi(uint64_t all_ms, uint64_t largest_ms) {
        numbers.totals[mpi_time_index] = all_ms * ms;
        numbers.largest[mpi_time_index] = largest_ms * ms;
        return *this;
    }
    Run& crowded(int ranks) {
        facts.crowded_ranks = ranks;
        return *this;
    }
    Run& on_nodes(int nodes, bool network_is_known) {
        facts.nodes = nodes;
        facts.network_is_known = network_is_known;
        return *this;
    }
    Run& with_profile() {
        facts.has_profile = true;
        return *this;
    }
    Run& with_type(WhyLibrary why, uint64_t by_library, uint64_t by_plan) {
        DatatypeUse use{};
        use.by_library[static_cast<size_t>(why)] = by_library;
        use.by_plan = by_plan;
        numbers.datatypes.push_back(use);
        return *this;
    }
    std::vector<std::string> next() const { return advices(facts, numbers); }
    bool says(const std::string& words) const {
        const auto found = next();
        return std::any_of(found.begin(), found.end(),
                           [&](const std::string& text) { return contains(text, words); });
    }
};

}  // namespace

TEST_CASE("What the report says to do next", "[base][report]") {
    CHECK(advices({}, no_numbers()).empty());
    CHECK(Run().next().empty());
    CHECK(Run().in_mpi(100, 30).crowded(4).next() ==
          std::vector<std::string>{"communication is 2.5 % of the run: look elsewhere for time"});
    CHECK(Run().crowded(1).says("more ranks and threads than CPUs, as seen by 1 rank:"));
    CHECK(Run().in_mpi(2'000, 900).says("one rank is in MPI calls for 900 ms, the mean is 500 ms"));
    CHECK_FALSE(Run().in_mpi(2'000, 700).says("one rank"));
    CHECK_FALSE(Run().in_mpi(240, 110).says("one rank"));  // little of the run
    CHECK(Run().with(Counter::decline_no_cpu, 4).waiting(1'000).says("take 25.0 % of the run"));
    CHECK_FALSE(Run().with(Counter::decline_no_cpu, 4).waiting(100).says("requests"));
    CHECK_FALSE(Run().waiting(1'000).says("requests"));
    CHECK(Run().with(Counter::decline_no_arena, 1).says("one container"));
    CHECK_FALSE(Run().with(Counter::decline_no_arena, 1).on_nodes(2, true).says("one container"));
    CHECK(Run().with(Counter::decline_gpu, 1).says("a GPU runtime is loaded"));
    CHECK(Run().with(Counter::decline_error_handler, 1).says("MPI_ERRORS_RETURN"));
    CHECK(Run().with_type(WhyLibrary::too_little, 1'000, 10).says("make each once, keep it"));
    CHECK_FALSE(Run().with_type(WhyLibrary::too_little, 999, 10).says("make each once"));
    CHECK_FALSE(Run().with_type(WhyLibrary::too_little, 1'000, 2'000).says("make each once"));
    CHECK(Run().on_nodes(2, false).says("vecmpi-bench network"));
    CHECK_FALSE(Run().on_nodes(2, true).says("vecmpi-bench network"));
    CHECK(Run().with(Counter::trials_cost_ns, 80 * Run::ms).says("VECMPI_PROFILE=learn"));
    CHECK_FALSE(
        Run().with(Counter::trials_cost_ns, 80 * Run::ms).with_profile().says("VECMPI_PROFILE"));
    CHECK(Run().with(Counter::decline_no_private_comm, 1).says("make one early"));
    Run of_half_a_second;
    of_half_a_second.numbers.largest[run_time_index] = 500 * Run::ms;
    CHECK(of_half_a_second.says("a run of 500 ms says little"));
    Run left = Run().with(Counter::decline_small, 10).with(Counter::decline_layout, 9);
    CHECK(left.says("most was left to the library (collective too small to split)"));
    left.numbers.totals[calls_index(0, Path::on_node)] = 10;
    CHECK(left.next().empty());
    // The first two of the table.
    const auto most = Run()
                          .with(Counter::decline_no_private_comm, 1)
                          .with(Counter::decline_gpu, 1)
                          .crowded(4)
                          .next();
    REQUIRE(most.size() == most_advices);
    CHECK(contains(most[0], "than CPUs"));
    CHECK(contains(most[1], "GPU"));
}

TEST_CASE("The head says what was done inside the library's calls", "[base][report]") {
    Run run;
    run.numbers.totals[calls_index(0, Path::direct)] = 3;
    CHECK(contains(format_summary(run.facts, run.numbers),
                   "  served: nothing, all calls were the library's own\n"));
    run.facts.waits_rest = true;
    run.with(Counter::elements_reduced, 70).with(Counter::plan_messages, 2).crowded(4);
    CHECK(
        contains(format_summary(run.facts, run.numbers),
                 "  served: 70 elements reduced by its kernels; 2 messages packed by plans; ranks "
                 "that wait give their CPU away, on 4 ranks\n"));
}

TEST_CASE("quote_json keeps UTF-8 and replaces the rest", "[base][report]") {
    CHECK(quote_json("") == "\"\"");
    CHECK(quote_json("a/b") == "\"a/b\"");
    CHECK(quote_json("\xe2\x82\xac\xf0\x9f\x98\x80") == "\"\xe2\x82\xac\xf0\x9f\x98\x80\"");
    CHECK(quote_json("\xe2\x82") == "\"\\ufffd\\ufffd\"");             // cut off
    CHECK(quote_json("\xc0\x80") == "\"\\ufffd\\ufffd\"");             // overlong
    CHECK(quote_json("\xed\xa0\x80") == "\"\\ufffd\\ufffd\\ufffd\"");  // a surrogate
    CHECK(quote_json(std::string_view("\0", 1)) == "\"\\u0000\"");
}
