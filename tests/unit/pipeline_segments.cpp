// SPDX-License-Identifier: BSD-3-Clause
// Where vectors are cut, and whether: pure functions over tables of cases.
#include "pipeline/segments/segment_count.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace vecmpi;
using namespace vecmpi::pipeline;

namespace {

constexpr uint64_t kib = 1024, mib = 1024 * kib;

Settings with_path(CollectivePath path) {
    Settings settings;
    const PathRanges everywhere{{{0, SIZE_MAX, path}}};
    settings.allreduce = settings.bcast = settings.reduce = everywhere;
    settings.reduce_scatter = settings.allgather = everywhere;
    return settings;
}

Settings with_segments(unsigned segments) {
    Settings settings = with_path(CollectivePath::segmented);
    settings.segments = segments;
    return settings;
}

Settings with_segment_bytes(size_t bytes) {
    Settings settings = with_path(CollectivePath::segmented);
    settings.segment_bytes = bytes;
    return settings;
}

SegmentFacts floats(uint64_t bytes, Collective collective = Collective::allreduce) {
    SegmentFacts facts;
    facts.collective = collective;
    facts.bytes = bytes;
    facts.elements = static_cast<int64_t>(bytes / 4);
    facts.ranks = 4;
    return facts;
}

SegmentFacts over_nodes(SegmentFacts facts) {
    facts.several_nodes = true;
    return facts;
}

constexpr Counter none = Counter::number_of_counters;

struct Row {
    std::string what;
    SegmentFacts facts;
    Settings settings;
    unsigned expected;
    Counter why = none;
};

}  // namespace

TEST_CASE("segment: the parts cover the vector exactly", "[pipeline][segments]") {
    for (int64_t elements :
         {0LL, 1LL, 2LL, 3LL, 7LL, 8LL, 9LL, 63LL, 64LL, 65LL, 1000003LL, 3LL << 40})
        for (unsigned n : {1u, 2u, 3u, 4u, 7u, 8u, 63u, 64u}) {
            INFO(elements << " elements in " << n << " segments");
            int64_t next = 0, smallest = INT64_MAX, largest = 0, before = INT64_MAX;
            for (unsigned i = 0; i < n; ++i) {
                const Segment part = segment(elements, n, i);
                REQUIRE(part.first == next);
                REQUIRE(part.count <= before);  // larger ones first
                before = part.count;
                next += part.count;
                smallest = std::min(smallest, part.count);
                largest = std::max(largest, part.count);
            }
            CHECK(next == elements);
            CHECK(largest - smallest <= 1);
        }
}

TEST_CASE("number_of_segments", "[pipeline][segments]") {
    Settings reproducible = with_segments(4);
    reproducible.reproducible = true;
    SegmentFacts one_rank = floats(mib);
    one_rank.ranks = 1;
    SegmentFacts three_elements = floats(mib);
    three_elements.elements = 3;
    SegmentFacts one_element = floats(mib);
    one_element.elements = 1;
    SegmentFacts two_ranks = over_nodes(floats(64 * mib)), three_ranks = two_ranks;
    two_ranks.ranks = 2;
    three_ranks.ranks = 3;
    const Settings automatic = with_path(CollectivePath::automatic);
    const Settings nothing_set;
    Settings both_ranges = with_segments(4);
    both_ranges.allreduce.ranges = {{0, SIZE_MAX, CollectivePath::segmented},
                                    {0, 64 * kib, CollectivePath::mpi}};

    const std::vector<Row> rows = {
        {"fixed number", floats(mib), with_segments(4), 4},
        {"fixed number, odd", floats(mib), with_segments(7), 7},
        {"one segment is no cut", floats(mib), with_segments(1), 0, Counter::decline_small},
        {"no more segments than elements", three_elements, with_segments(8), 3},
        {"one element", one_element, with_segments(8), 0, Counter::decline_small},
        {"nothing", floats(0), with_segments(4), 0, Counter::decline_small},
        {"fixed size divides", floats(mib), with_segment_bytes(256 * kib), 4},
        {"fixed size leaves a rest", floats(mib + 4), with_segment_bytes(256 * kib), 5},
        {"fixed size of the whole", floats(mib), with_segment_bytes(mib), 0,
         Counter::decline_small},
        {"fixed size beyond the whole", floats(mib), with_segment_bytes(4 * mib), 0,
         Counter::decline_small},
        {"segmented, nothing else set", floats(mib), with_path(CollectivePath::segmented), 4},
        {"library path", floats(mib), with_path(CollectivePath::mpi), 0, Counter::decline_setting},
        {"one rank", one_rank, with_segments(4), 0, Counter::decline_setting},
        {"reproducible", floats(mib), reproducible, 0, Counter::decline_reproducible},
        {"reproducible does not concern Bcast", floats(mib, Collective::bcast), reproducible, 4},
        {"reproducible does not concern Allgather", floats(mib, Collective::allgather),
         reproducible, 4},
        {"reproducible Reduce", floats(mib, Collective::reduce), reproducible, 0,
         Counter::decline_reproducible},
        {"reproducible Reduce_scatter", floats(mib, Collective::reduce_scatter), reproducible, 0,
         Counter::decline_reproducible},
        {"ranges: small", floats(64 * kib - 4), both_ranges, 0, Counter::decline_setting},
        {"ranges: from the bound", floats(64 * kib), both_ranges, 4},
        {"auto on one node", floats(64 * mib), automatic, 0, Counter::decline_layout},
        {"auto over nodes, small", over_nodes(floats(mib - 4)), automatic, 0,
         Counter::decline_small},
        {"auto over two nodes", two_ranks, automatic, 0, Counter::decline_layout},
        {"auto over three nodes", three_ranks, automatic, 4},
        {"two ranks, asked for", two_ranks, with_segments(4), 4},
        {"auto over nodes", over_nodes(floats(mib)), automatic, 4},
        {"auto over nodes, nothing set", over_nodes(floats(mib)), nothing_set, 4},
        {"auto Bcast", over_nodes(floats(64 * mib, Collective::bcast)), automatic, 0,
         Counter::decline_small},
        {"auto Reduce", over_nodes(floats(64 * mib, Collective::reduce)), automatic, 0,
         Counter::decline_small},
        {"auto Reduce_scatter", over_nodes(floats(64 * mib, Collective::reduce_scatter)), automatic,
         0, Counter::decline_small},
        {"auto Allgather", over_nodes(floats(64 * mib, Collective::allgather)), automatic, 0,
         Counter::decline_small},
    };
    for (const Row& row : rows) {
        INFO(row.what);
        Counter why = none;
        CHECK(number_of_segments(row.facts, row.settings, &why) == row.expected);
        CHECK(why == row.why);
    }
}

TEST_CASE("number_of_segments is bounded", "[pipeline][segments]") {
    Counter why = none;
    const unsigned n = number_of_segments(floats(uint64_t{1} << 40), with_segment_bytes(kib), &why);
    CHECK(n >= 2);
    CHECK(n <= 1u << 20);
}
