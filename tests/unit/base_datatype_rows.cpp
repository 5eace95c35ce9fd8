// SPDX-License-Identifier: BSD-3-Clause
// Rows of derived datatypes: what is counted, how rows of ranks add up, what a reader sees.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/api.hpp"
#include "base/counter_snapshot.hpp"

using namespace vecmpi;
using namespace vecmpi::base;

namespace {

struct Counting {
    Counting() {
        begin_report();
        forget_datatype_rows();
    }
    ~Counting() {
        forget_datatype_rows();
        count_for_report(false);
        empty_report();  // the run's time too
    }
};

std::unique_ptr<DatatypeUses> uses() {
    auto all = std::make_unique<DatatypeUses>();
    read_datatype_rows(*all);
    return all;
}

uint64_t& times(DatatypeUse& use, WhyLibrary why) {
    return use.by_library[static_cast<size_t>(why)];
}

DatatypeUse use_of(const std::string& made_as, uint64_t bytes, uint64_t by_plan,
                   uint64_t too_little = 0) {
    DatatypeUse use{};
    std::strcpy(use.made_as, made_as.c_str());
    use.bytes = bytes;
    use.by_plan = by_plan;
    times(use, WhyLibrary::too_little) = too_little;
    return use;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

ReportNumbers numbers_of(std::vector<DatatypeUse> datatypes) {
    const std::vector<uint64_t> zeros(snapshot_length);
    return {zeros, zeros, std::move(datatypes)};
}

}  // namespace

TEST_CASE("Datatypes of one description have one row", "[base][report]") {
    const Counting on;
    const RowNumber one = datatype_row("vector(2, 1, 2) of MPI_INT");
    const RowNumber other = datatype_row("vector(2, 1, 3) of MPI_INT");
    CHECK(one != other);
    CHECK((one > row_of_others && other > row_of_others));
    CHECK(datatype_row("vector(2, 1, 2) of MPI_INT") == one);
    const std::string letters(longest_made_as, 'x');
    CHECK(datatype_row(letters + "y") == datatype_row(letters + "z"));
    std::thread thread([&] {
        for (int i = 0; i < 1000; ++i) count_by_plan(one, 10);
    });
    for (int i = 0; i < 1000; ++i) count_by_library(one, 1, WhyLibrary::slower);
    thread.join();
    count_by_library(row_of_others, 5, WhyLibrary::gpu);
    count_by_plan(no_row, 5);
    auto all = uses();
    REQUIRE(all->number == 2);  // the others', and that one of three which was used
    CHECK(all->rows[1].made_as == std::string("vector(2, 1, 2) of MPI_INT"));
    CHECK(all->rows[1].by_plan == 1000);
    CHECK(all->rows[1].bytes == 11000);
    CHECK(times(all->rows[1], WhyLibrary::slower) == 1000);
    CHECK(times_by_library(all->rows[1]) == 1000);
    CHECK(all->rows[0].bytes == 5);
}

TEST_CASE("Rows obey MPI_Pcontrol", "[base][report]") {
    const Counting on;
    const RowNumber row = datatype_row("a");
    count_for_report(false);
    count_by_plan(row, 1);
    count_by_library(row, 1, WhyLibrary::trial);
    CHECK(uses()->number == 1);
    count_for_report(true);
    count_by_plan(row, 1);
    CHECK(uses()->number == 2);
    empty_report();
    CHECK(uses()->number == 1);
    CHECK(datatype_row("a") == row);
}

TEST_CASE("Datatypes that come and go by thousands have some rows", "[base][report]") {
    const Counting on;
    for (int i = 0; i < 5000; ++i) {
        const RowNumber row = datatype_row("vector(" + std::to_string(i) + ")");
        CHECK(row <= 1 + most_datatype_rows);
        CHECK((row == row_of_others) == (static_cast<size_t>(i) >= most_datatype_rows));
        count_by_plan(row, 1);
    }
    CHECK(datatype_row("vector(7)") != row_of_others);
    const auto all = uses();
    CHECK(all->number == 1 + most_datatype_rows);
    CHECK(all->rows[0].by_plan == 5000 - most_datatype_rows);
    CHECK(all->rows[0].made_as == std::string("all others"));
}

TEST_CASE("Rows of ranks add up by their texts", "[base][report]") {
    const auto sum = std::make_unique<DatatypeUses>(), rank = std::make_unique<DatatypeUses>();
    sum->number = rank->number = 3;
    sum->rows[0] = use_of("all others", 1, 1);
    sum->rows[1] = use_of("a", 10, 1, 2);
    sum->rows[2] = use_of("b", 20, 2);
    rank->rows[0] = use_of("all others", 2, 2);
    rank->rows[1] = use_of("c", 30, 3, 1);
    rank->rows[2] = use_of("a", 100, 10, 20);
    add_datatype_uses(*rank, *sum);
    REQUIRE(sum->number == 4);
    CHECK(sum->rows[0].bytes == 3);
    CHECK(sum->rows[1].bytes == 110);
    CHECK(sum->rows[1].by_plan == 11);
    CHECK(times_by_library(sum->rows[1]) == 22);
    CHECK(sum->rows[2].bytes == 20);
    CHECK(sum->rows[3].made_as == std::string("c"));
    rank->number = 1 + most_datatype_rows;
    for (size_t i = 1; i < rank->number; ++i) rank->rows[i] = use_of("d" + std::to_string(i), 1, 1);
    add_datatype_uses(*rank, *sum);
    CHECK(sum->number == 1 + most_datatype_rows);
    CHECK(sum->rows[0].bytes == 3 + 2 + 3);  // three had no room
}

TEST_CASE("The summary shows the datatypes with most bytes", "[base][report]") {
    CHECK_FALSE(contains(format_summary({}, numbers_of({use_of("unused", 0, 0)})), "datatypes"));
    DatatypeUse first = use_of("vector(1000, 1, 2) of MPI_DOUBLE", 16 << 20, 1990, 6);
    times(first, WhyLibrary::trial) = 4;
    times(first, WhyLibrary::overlap) = 3;
    times(first, WhyLibrary::differs) = 2;
    std::vector<DatatypeUse> all{use_of("all others", 7, 1, 2), first};
    const std::string text = format_summary({}, numbers_of(all));
    CHECK(contains(
        text,
        "derived datatypes, sums of all ranks, most bytes first\n"
        "       times       bytes     by plan  by library  made as\n"
        "        2005      16 MiB        1990          15  vector(1000, 1, 2) of MPI_DOUBLE\n"
        "              by the library: 6 used too little for a plan yet; 4 turns in the trial "
        "against the plan; 3 blocks that may overlap\n"
        "           3         7 B           1           2  all others\n"));
    CHECK_FALSE(contains(text, "more"));
    for (int i = 0; i < 7; ++i)
        all.push_back(use_of("type " + std::to_string(i), 100 + static_cast<uint64_t>(i), 1));
    const std::string many = format_summary({}, numbers_of(all));
    CHECK(contains(many, "type 4\n"));
    CHECK_FALSE(contains(many, "type 3\n"));
    CHECK(contains(
        many,
        "           7       413 B           5           2  and 5 more; VECMPI_REPORT=json:FILE has "
        "all\n"));
}

TEST_CASE("The JSON report has all datatypes", "[base][report]") {
    CHECK(contains(format_json({}, numbers_of({})), "\"datatypes\": [],\n"));
    DatatypeUse one = use_of("a \"name\"", 100, 3, 1);
    times(one, WhyLibrary::slower) = 2;
    const std::string json = format_json({}, numbers_of({use_of("all others", 0, 0), one}));
    CHECK(contains(json,
                   "  \"datatypes\": [\n"
                   R"(    {"made_as": "a \"name\"", "times": 6, "bytes": 100, "by_plan": 3, )"
                   R"("by_library": 3, "why_library": {"slower": 2, "too_little": 1}})"
                   "\n  ],\n"));
}
