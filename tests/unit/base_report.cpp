// SPDX-License-Identifier: BSD-3-Clause
// Counters and the report: what is counted, what a person reads, and that the JSON is whole.
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/report_layout.hpp"
#include "vecmpi/base.hpp"

using namespace vecmpi;

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

}  // namespace

TEST_CASE("Nothing is counted until the report is asked for", "[base][report]") {
    auto before = counter_snapshot();
    count(Counter::issued_inline);
    count_call(3, Path::direct, 100);
    CHECK(counter_snapshot() == before);
}

TEST_CASE("Counters add up over threads", "[base][report]") {
    auto before = counter_snapshot();
    CHECK(before.size() == snapshot_length);
    counting_enabled.store(true);
    auto work = [] {
        for (int i = 0; i < 1000; ++i) {
            count(Counter::segments_issued, 4);
            count_call(7, Path::segmented, 10);
            count_call(max_calls - 1, Path::library, 0);
        }
    };
    std::thread other(work);
    work();
    other.join();
    count_call(max_calls, Path::library, 1);  // beyond the table: ignored
    count_event(Counter::number_of_counters, 1);
    counting_enabled.store(false);
    auto after = counter_snapshot();
    auto grown = [&](size_t index) { return after[index] - before[index]; };
    CHECK(grown(event_index(Counter::segments_issued)) == 8000);
    CHECK(grown(calls_index(7, Path::segmented)) == 2000);
    CHECK(grown(bytes_index(7, Path::segmented)) == 20000);
    CHECK(grown(calls_index(max_calls - 1, Path::library)) == 2000);
    CHECK(grown(bytes_index(max_calls - 1, Path::library)) == 0);
    uint64_t all = 0;
    for (size_t i = 0; i < after.size(); ++i) all += grown(i);
    CHECK(all == 8000 + 2000 + 20000 + 2000);
}

TEST_CASE("The summary shows what is not zero", "[base][report]") {
    std::vector<uint64_t> totals(snapshot_length);
    totals[calls_index(2, Path::segmented)] = 12;
    totals[bytes_index(2, Path::segmented)] = 48 << 20;
    totals[calls_index(0, Path::library)] = 5;
    totals[calls_index(1, Path::direct)] = 1;
    totals[event_index(Counter::segments_issued)] = 96;
    totals[event_index(Counter::decline_small)] = 7;
    std::string text = format_summary(facts_of_two_calls(), totals);
    CHECK(contains(text, "vecmpi report: 4 ranks on 2 nodes, offload thread on 1 rank\n"));
    CHECK(contains(text, "  MPI library: MPICH Version: 4.0.2\n"));
    CHECK(contains(text, "  offload thread off: VECMPI_OFFLOAD=off\n"));
    CHECK(contains(text, "  MPI_Send       library               5             -\n"));
    CHECK(contains(text, "  call 1         direct                1             -\n"));
    CHECK(contains(text, "  MPI_Allreduce  segmented            12        48 MiB\n"));
    CHECK(contains(text, "events\n            96  segments issued\n"));
    CHECK(contains(text,
                   "declined, with the reason\n             7  collective too small to split\n"));
    CHECK(contains(text, "  segmented: "));
    CHECK_FALSE(contains(text, "queued"));
    CHECK_FALSE(contains(text, "decline_"));
}

TEST_CASE("The summary of nothing says so", "[base][report]") {
    for (size_t length : {size_t{0}, size_t{1}, snapshot_length}) {
        std::string text = format_summary(ReportFacts(), std::vector<uint64_t>(length));
        CHECK(text ==
              "vecmpi report: 1 rank on 1 node, offload thread on 0 ranks\nno calls counted\n");
    }
}

TEST_CASE("The JSON report is whole", "[base][report]") {
    ReportFacts facts = facts_of_two_calls();
    facts.notes.push_back("a \"quoted\" \\ note\nwith \x01 and \xff and \xc3\xa9");
    std::vector<uint64_t> totals(snapshot_length);
    CHECK(is_balanced(format_json(facts, totals)));
    totals[calls_index(2, Path::segmented)] = 12;
    totals[bytes_index(2, Path::segmented)] = 48 << 20;
    totals[calls_index(0, Path::inline_issue)] = UINT64_MAX;
    std::string json = format_json(facts, totals);
    CHECK(is_balanced(json));
    CHECK(contains(
        json, R"({"name": "MPI_Allreduce", "path": "segmented", "calls": 12, "bytes": 50331648})"));
    CHECK(contains(json, R"("path": "inline", "calls": 18446744073709551615)"));
    CHECK(contains(json, R"(a \"quoted\" \\ note\u000awith \u0001 and \ufffd and )"
                         "\xc3\xa9\""));
    for (const CounterText& counter : counter_texts)
        CHECK(contains(json, quote_json(counter.name) + ": {"));
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
