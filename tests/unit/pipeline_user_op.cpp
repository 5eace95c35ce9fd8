// SPDX-License-Identifier: BSD-3-Clause
// When an Allreduce with a user's op is scattered.
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include "pipeline/segments/scattered_allreduce.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline;

TEST_CASE("scatters", "[pipeline][user_op]") {
    constexpr uint64_t kib = 1024, mib = 1024 * kib;
    constexpr Counter none = Counter::number_of_counters;
    Settings nothing_set, reproducible, mpi, segmented;
    reproducible.reproducible = true;
    mpi.allreduce.ranges = {{0, SIZE_MAX, CollectivePath::mpi}};
    segmented.allreduce.ranges = {{0, SIZE_MAX, CollectivePath::segmented}};
    struct Row {
        std::string what;
        UserOpFacts facts;
        Settings settings;
        bool expected;
        Counter why = none;
    };
    const std::vector<Row> rows = {
        {"large", {mib, mib / 2, 4}, nothing_set, true},
        {"three ranks", {mib, mib / 2, 3}, nothing_set, true},
        {"two ranks", {mib, mib / 2, 2}, nothing_set, false, Counter::decline_layout},
        {"one rank", {mib, mib / 2, 1}, nothing_set, false, Counter::decline_layout},
        {"small", {kib, kib / 2, 4}, nothing_set, false, Counter::decline_small},
        {"just too small", {mib - 2, mib / 2 - 1, 4}, nothing_set, false, Counter::decline_small},
        {"few large elements", {mib, 3, 4}, nothing_set, false, Counter::decline_small},
        {"an element a rank", {mib, 4, 4}, nothing_set, true},
        {"reproducible", {mib, mib / 2, 4}, reproducible, false, Counter::decline_reproducible},
        {"library path", {mib, mib / 2, 4}, mpi, false, Counter::decline_setting},
        {"segmented", {mib, mib / 2, 4}, segmented, false, Counter::decline_setting},
    };
    for (const Row& row : rows) {
        INFO(row.what);
        Counter why = none;
        CHECK(scatters(row.facts, row.settings, &why) == row.expected);
        CHECK(why == row.why);
    }
}
