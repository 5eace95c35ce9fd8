// SPDX-License-Identifier: BSD-3-Clause
// Which path serves a collective: tables of cases.
#include "pipeline/choice.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace vecmpi;
using namespace vecmpi::pipeline;

namespace {

constexpr uint64_t kib = 1024, mib = 1024 * kib;
constexpr Counter none = Counter::number_of_counters;
using enum CollectivePath;

ChoiceFacts over(int ranks, int nodes, uint64_t bytes,
                 Collective collective = Collective::allreduce) {
    ChoiceFacts facts;
    facts.collective = collective;
    facts.bytes = bytes;
    facts.elements = static_cast<int64_t>(bytes / 4);
    facts.ranks = ranks;
    facts.nodes = nodes;
    facts.most_ranks_on_a_node = (ranks + nodes - 1) / nodes;
    facts.uniform = ranks % nodes == 0;
    return facts;
}

ChoiceFacts not_commuting(ChoiceFacts facts) {
    facts.commutative = false;
    return facts;
}

ChoiceFacts computing(ChoiceFacts facts) {
    facts.nonblocking = true;
    return facts;
}

Settings with(CollectivePath path) {
    Settings settings;
    settings.allreduce = settings.reduce = settings.reduce_scatter = settings.bcast =
        settings.allgather = settings.alltoall = PathRanges{{{0, SIZE_MAX, path}}};
    return settings;
}

Settings reproducible(Settings settings = {}) {
    settings.reproducible = true;
    return settings;
}

struct Row {
    std::string what;
    ChoiceFacts facts;
    Settings settings;
    CollectivePath path;
    Counter why = none;
};

void check(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        INFO(row.what);
        const Choice choice = choose(row.facts, row.settings);
        CHECK(std::string(name_of(choice.path)) == name_of(row.path));
        CHECK(choice.why == row.why);
    }
}

}  // namespace

TEST_CASE("choose: what a setting names wins where it can serve", "[pipeline][choice]") {
    Settings by_size;
    by_size.allreduce.ranges = {{0, 64 * kib, recursive_doubling}, {mib, SIZE_MAX, ring}};
    const ChoiceFacts small = over(4, 4, 64), large = over(4, 4, mib);
    ChoiceFacts nothing = large;
    nothing.bytes = 0;
    nothing.elements = 0;
    check({
        {"mpi", large, with(mpi), mpi, Counter::decline_setting},
        {"segmented", large, with(segmented), segmented},
        {"segmented on one node", over(4, 1, mib), with(segmented), segmented},
        {"ring", large, with(ring), ring},
        {"ring, a few bytes", small, with(ring), ring},
        {"ring on one node", over(4, 1, mib), with(ring), ring},
        {"ring, op that does not commute", not_commuting(large), with(ring), mpi,
         Counter::decline_order},
        {"segmented keeps the order", not_commuting(large), with(segmented), segmented},
        {"mpi, op that does not commute", not_commuting(large), with(mpi), mpi,
         Counter::decline_setting},
        {"no op in Bcast", not_commuting(over(4, 4, mib, Collective::bcast)), with(chain), chain},
        {"one rank", over(1, 1, mib), with(ring), mpi, Counter::decline_setting},
        {"nothing to send", nothing, with(ring), mpi, Counter::decline_small},
        {"ranges: small", over(4, 4, 64 * kib - 4), by_size, recursive_doubling},
        {"ranges: large", large, by_size, ring},
    });
}

TEST_CASE("which calls are the library's by their size alone", "[pipeline][choice]") {
    CHECK(librarys_below(Collective::allreduce, {}) == 4096);
    CHECK(librarys_below(Collective::gather, {}) == 1024);
    CHECK(librarys_below(Collective::barrier, {}) == 0);
    CHECK(librarys_below(Collective::allreduce, with(ring)) == 0);
    Settings same_bits;
    same_bits.reproducible = true;
    CHECK(librarys_below(Collective::allreduce, same_bits) == 0);
    CHECK(librarys_below(Collective::bcast, same_bits) == 4096);
    // What is so short is declined, whatever else the call is.
    for (size_t i = 0; i < number_of_settable_collectives; ++i) {
        const auto collective = static_cast<Collective>(i);
        Counter why{};
        CHECK_FALSE(
            may_be_scheduled(collective, librarys_below(collective, {}) - 1, true, {}, &why));
    }
}

TEST_CASE("choose: auto", "[pipeline][choice]") {
    check({
        {"one node", over(4, 1, 64 * mib), {}, mpi, Counter::decline_layout},
        {"two ranks", over(2, 2, 4 * mib), {}, ring},
        {"two ranks, less", over(2, 2, 4 * mib - 4), {}, mpi, Counter::decline_small},
        {"two ranks, no arithmetic",
         over(2, 2, 64 * mib, Collective::bcast),
         {},
         mpi,
         Counter::decline_small},
        {"few bytes", over(16, 16, 64), {}, mpi, Counter::decline_small},
        {"few bytes for each",
         over(16, 16, 32 * kib - 4, Collective::alltoall),
         {},
         mpi,
         Counter::decline_small},
        {"the library sends all at once, too",
         over(16, 16, 32 * kib, Collective::alltoall),
         {},
         mpi,
         Counter::decline_slower},
        {"not in a nonblocking one",
         computing(over(16, 16, 64 * kib, Collective::alltoall)),
         {},
         mpi,
         Counter::decline_small},
        {"it sends one by one", over(16, 16, 64 * kib, Collective::alltoall), {}, pairwise},
        {"the same, long ones", over(4, 4, 4 * mib, Collective::alltoall), {}, pairwise},
        {"the same over nodes of several ranks",
         over(16, 4, mib, Collective::alltoall),
         {},
         pairwise},
        {"partners that change cost", over(4, 4, 16 * mib), {}, ring},
        {"op that does not commute",
         not_commuting(over(16, 16, mib)),
         {},
         mpi,
         Counter::decline_order},
    });
    // The model itself is tested in pipeline_cost.cpp; here what is made of it.
    for (int c = 0; c < static_cast<int>(number_of_settable_collectives); ++c)
        for (int ranks : {2, 3, 4, 5, 8, 12, 16, 64, 100000})
            for (uint64_t bytes : {4 * kib, 64 * kib, mib, 64 * mib}) {
                const ChoiceFacts facts = over(ranks, ranks, bytes, static_cast<Collective>(c));
                const Choice choice = choose(facts, {});
                INFO(c << " " << ranks << " ranks " << bytes << " bytes");
                CHECK(choice.path != automatic);
                CHECK(choice.path != segmented);
                CHECK(choice.predicted_us > 0);
                CHECK(choice.library_us > 0);
                const bool overlaps_arithmetic = facts.collective == Collective::allreduce ||
                                                 facts.collective == Collective::reduce;
                const bool left_to_library =
                    (ranks == 2 && (bytes < 4 * mib || !overlaps_arithmetic)) ||
                    (facts.collective == Collective::alltoall && bytes < 32 * kib);
                if (left_to_library) {
                    CHECK(choice.path == mpi);
                    CHECK(choice.why == Counter::decline_small);
                } else if (choice.path == mpi) {
                    CHECK(choice.why == Counter::decline_slower);
                    CHECK(choice.predicted_us * 1.05 > choice.library_us);
                } else {
                    CHECK(is_algorithm_of(facts.collective, choice.path));
                    CHECK(choice.predicted_us * 1.05 <= choice.library_us);
                    CHECK(choice.segments >= 1);
                    CHECK(choice.segments <= (choice.path == circulant ? 64 : 16));
                }
            }
}

// The library runs the same trees and rounds: only a trial can show who is faster.
TEST_CASE("choose: Gather, Scatter and Barrier are left to a trial", "[pipeline][choice]") {
    using enum Collective;
    struct Row {
        Collective collective;
        uint64_t bytes;
        CollectivePath rival;
    };
    for (const Row& row :
         {Row{gather, kib, binomial}, Row{gather, mib, binomial}, Row{scatter, kib, binomial},
          Row{scatter, mib, binomial}, Row{barrier, barrier_bytes, dissemination}})
        for (int ranks : {3, 4, 12, 64}) {
            ChoiceFacts facts = over(ranks, ranks, row.bytes, row.collective);
            facts.elements = static_cast<int64_t>(row.bytes);
            const Choice choice = choose(facts, {});
            INFO(static_cast<int>(row.collective) << " " << ranks << " " << row.bytes);
            CHECK(choice.path == mpi);
            CHECK(choice.why == Counter::decline_slower);
            CHECK(choice.rival == row.rival);
            CHECK(choice.is_open);
            CHECK(choice.segments == 1);
            CHECK_FALSE(choice.may_be_cut);
        }
    check({
        {"few bytes", over(16, 16, kib - 4, gather), {}, mpi, Counter::decline_small},
        {"two ranks", over(2, 2, mib, scatter), {}, mpi, Counter::decline_small},
        {"one node", over(4, 1, mib, gather), {}, mpi, Counter::decline_layout},
    });
    Counter why{};
    CHECK(may_be_scheduled(gather, kib, true, {}, &why));
    CHECK_FALSE(may_be_scheduled(gather, kib, false, {}, &why));
    CHECK(why == Counter::decline_layout);
    CHECK_FALSE(may_be_scheduled(scatter, 0, true, {}, &why));
    CHECK(why == Counter::decline_small);
    CHECK(may_be_scheduled_at_some_size(scatter, true, {}));
    CHECK_FALSE(may_be_scheduled_at_some_size(scatter, false, {}));
}

TEST_CASE("choose: large vectors over slow links leave the library", "[pipeline][choice]") {
    // MPICH folds the vector of the fifth rank over the same links.
    const Choice five = choose(over(5, 5, 16 * mib), {});
    CHECK(five.path != mpi);
    CHECK(five.predicted_us * 1.3 < five.library_us);
    // A tree sends the whole vector log2(p) times.
    CHECK(choose(over(6, 6, 64 * mib, Collective::bcast), {}).path == chain);
    CHECK(choose(over(64, 16, 64 * mib), {}).path != mpi);
}

TEST_CASE("choose: VECMPI_REPRODUCIBLE rests on bytes and ranks only", "[pipeline][choice]") {
    using enum Collective;
    check({
        {"small", over(8, 8, 8), reproducible(), recursive_doubling},
        {"large", over(8, 8, mib), reproducible(), recursive_halving},
        {"one node", over(8, 1, mib), reproducible(), recursive_halving},
        {"few ranks", over(3, 3, mib), reproducible(), recursive_doubling},
        {"another algorithm named", over(8, 8, mib), reproducible(with(ring)), recursive_halving},
        {"library named", over(8, 8, mib), reproducible(with(mpi)), recursive_halving},
        {"segmented named", over(8, 8, mib), reproducible(with(segmented)), recursive_halving},
        {"one of the two named", over(8, 8, mib), reproducible(with(recursive_doubling)),
         recursive_doubling},
        {"the other", over(8, 8, 8), reproducible(with(recursive_halving)), recursive_halving},
        {"op that does not commute", not_commuting(over(8, 8, mib)), reproducible(), mpi,
         Counter::decline_order},
        {"segmented does not commute", not_commuting(over(8, 8, mib)),
         reproducible(with(segmented)), mpi, Counter::decline_order},
        {"Reduce", over(8, 8, mib, reduce), reproducible(), binomial},
        {"Reduce, chain named", over(8, 8, mib, reduce), reproducible(with(chain)), binomial},
        {"Reduce_scatter", over(8, 1, mib, reduce_scatter), reproducible(), ring},
        {"no sum in Bcast", over(8, 1, mib, bcast), reproducible(), mpi, Counter::decline_layout},
        {"no sum in Allgather", over(8, 8, mib, allgather), reproducible(with(mpi)), mpi,
         Counter::decline_setting},
    });
    Settings fast = reproducible();
    fast.network = {100, 50000000000, 100};
    for (uint64_t bytes : {8 * kib, 16 * kib - 4, 16 * kib, mib})
        for (int nodes : {1, 2, 8})
            CHECK(choose(over(8, nodes, bytes), fast).path ==
                  choose(over(8, 8, bytes), reproducible()).path);
}

TEST_CASE("choose: segments", "[pipeline][choice]") {
    Settings four = with(rabenseifner), of_256k = with(rabenseifner), of_1k = of_256k;
    four.segments = 4;
    of_256k.segment_bytes = 256 * kib;
    of_1k.segment_bytes = kib;
    ChoiceFacts three_elements = over(4, 4, mib);
    three_elements.elements = 3;
    CHECK(choose(over(4, 4, mib), four).segments == 4);
    CHECK(choose(over(4, 4, 8), four).segments == 2);  // two elements
    CHECK(choose(three_elements, four).segments == 3);
    CHECK(choose(over(4, 4, mib), of_256k).segments == 4);
    CHECK(choose(over(4, 4, mib + 4), of_256k).segments == 5);
    CHECK(choose(over(4, 4, 1024 * mib), of_1k).segments == 4096);
    // The model's own: no crumbs.
    for (uint64_t bytes : {uint64_t{4}, kib, 16 * kib, 63 * kib})
        CHECK(choose(over(4, 4, bytes), with(rabenseifner)).segments == 1);
    for (uint64_t bytes : {64 * kib, mib, 64 * mib})
        for (int ranks : {2, 16, 1000, 100000}) {
            const unsigned segments = choose(over(ranks, ranks, bytes), with(ring)).segments;
            CHECK((segments == 1 || bytes / segments / static_cast<uint64_t>(ranks) >= 16 * kib));
        }
    CHECK(choose(over(16, 16, 64 * mib, Collective::bcast), with(chain)).segments == 16);
}

TEST_CASE("choose: blocks of an Allgatherv", "[pipeline][choice]") {
    const auto of = [](uint64_t mean, uint64_t largest, int ranks = 4) {
        ChoiceFacts facts = over(ranks, ranks, mean, Collective::allgather);
        facts.largest_bytes = largest;
        facts.elements = static_cast<int64_t>(largest);
        return facts;
    };
    const auto us = [&](const ChoiceFacts& facts, CollectivePath path, unsigned segments) {
        return predicted_us(path, facts, {segments, 2}, {});
    };
    struct Blocks {
        std::string what;
        ChoiceFacts facts;
        unsigned least_segments, most_segments;  // of 16 that are tried
        CollectivePath path;
    };
    for (const Blocks& row : std::vector<Blocks>{
             {"even", of(mib, mib), 2, 16, ring},
             {"even, 7 ranks", of(mib, mib, 7), 2, 16, ring},
             {"one rank gives all", of(mib, 4 * mib), 16, 16, ring},
             {"one rank gives all, 7 ranks", of(mib, 7 * mib, 7), 16, 16, ring},
             {"one rank gives half", of(4 * mib, 8 * mib), 2, 16, ring},
             {"one rank gives all, of a size that is not cut", of(4 * kib, 28 * kib, 7), 1, 1, mpi},
         }) {
        INFO(row.what);
        const Choice choice = choose(row.facts, {});
        CHECK(std::string(name_of(choice.path)) == name_of(row.path));
        CHECK(choice.segments >= row.least_segments);
        CHECK(choice.segments <= row.most_segments);
    }
    // In one piece a block that is all goes over each link by itself, one after the other.
    const ChoiceFacts even = of(mib, mib), all = of(mib, 4 * mib);
    CHECK(us(all, ring, 1) > 3.9 * us(even, ring, 1));
    CHECK(us(all, ring, 16) < 1.6 * us(even, ring, 1));
    CHECK(us(all, bruck, 1) > 2.6 * us(even, bruck, 1));
    CHECK(us(of(mib, mib), ring, 4) == us(of(mib, 0), ring, 4));
    CHECK(library_cost(all, {}).us > 1.3 * library_cost(even, {}).us);
    Settings of_256k;
    of_256k.segment_bytes = 256 * kib;
    CHECK(choose(all, of_256k).segments == 16);
}

TEST_CASE("choose: the names of settings are the algorithms that there are", "[pipeline][choice]") {
    const char* variables[] = {"VECMPI_ALLREDUCE=", "VECMPI_REDUCE=",    "VECMPI_REDUCE_SCATTER=",
                               "VECMPI_BCAST=",     "VECMPI_ALLGATHER=", "VECMPI_ALLTOALL="};
    for (size_t c = 0; c < number_of_settable_collectives; ++c)
        for (CollectivePath path : schedule_paths) {
            const std::string entry = std::string(variables[c]) + name_of(path);
            const char* environment[] = {entry.c_str(), nullptr};
            INFO(entry);
            CHECK(parse_settings(environment).problem.empty() ==
                  is_algorithm_of(static_cast<Collective>(c), path));
        }
}
