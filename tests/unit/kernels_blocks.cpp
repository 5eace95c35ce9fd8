// SPDX-License-Identifier: BSD-3-Clause
// The kernels of scattered blocks, on each instruction set of this CPU.
#include <catch2/catch.hpp>
#include <random>

#include "battery.hpp"
#include "kernels/permutation.hpp"

using namespace vecmpi;
using namespace vecmpi::kernels;

TEST_CASE("scattered blocks are copied byte for byte", "[kernels]") {
    battery::Options options;
    options.seed = std::random_device()();
    options.quick = true;
    for (const Isa isa : {Isa::scalar, best_isa()}) {
        CAPTURE(options.seed, isa_name(isa));
        const battery::Tally tally = battery::check_blocks(isa, options);
        INFO(tally.complaints);
        CHECK(tally.failed == 0);
        CHECK(tally.passed > 1000);
    }
}

TEST_CASE("permutations: where they can serve, and how many records they take", "[kernels]") {
    struct Case {
        const char* what;
        std::vector<Block> blocks;
        int64_t stride;
        size_t permutations, records, lines;
    };
    for (const Case& c :
         std::vector<Case>{{"1 of 2 ints", {{0, 4}}, 8, 1, 16, 2},
                           {"1 of 2 ints, down", {{0, 4}}, -8, 1, 16, 2},
                           {"2 of 3 ints", {{0, 8}}, 12, 1, 8, 2},
                           {"1 of 16 bytes", {{0, 1}}, 16, 1, 32, 8},
                           {"1 of 64 bytes: too far apart", {{0, 1}}, 64, 0, 0, 0},
                           {"1 of 2 complex", {{0, 16}}, 32, 1, 4, 2},
                           {"1 of 4 complex: faster one by one", {{0, 16}}, 64, 0, 0, 0},
                           {"on each other: no table says which", {{0, 4}}, 2, 0, 0, 0},
                           {"int, gap, double", {{0, 4}, {8, 8}}, 16, 1, 5, 2},
                           {"long blocks", {{0, 1024}}, 2048, 0, 0, 0},
                           {"blocks of 80 bytes", {{0, 80}}, 144, 0, 0, 0},
                           {"a page between records", {{0, 4}, {8, 8}}, 8192, 0, 0, 0}}) {
        CAPTURE(c.what);
        std::vector<Permutation> tables(4);
        const PermutationChoice choice = choose_permutations(c.blocks, c.stride);
        REQUIRE(choice.number == c.permutations);
        if (c.permutations == 0) continue;
        make_permutations(c.blocks, c.stride, choice, tables.data());
        CHECK(tables[0].records == c.records);
        CHECK(tables[0].lines == c.lines);
    }
}

TEST_CASE("groups are read whole only within the span of the records", "[kernels]") {
    Permutation tables;
    const std::vector<Block> blocks = {{0, 4}};
    make_permutations(blocks, 8, choose_permutations(blocks, 8), &tables);
    REQUIRE(tables.records == 16);  // 124 bytes, 128 read
    CHECK(groups_within(tables, 8, 0, 4, 0) == 0);
    CHECK(groups_within(tables, 8, 0, 4, 15) == 0);
    CHECK(groups_within(tables, 8, 0, 4, 16) == 0);
    CHECK(groups_within(tables, 8, 0, 4, 17) == 1);
    CHECK(groups_within(tables, 8, 0, 4, 33) == 2);
    make_permutations(blocks, -8, choose_permutations(blocks, -8), &tables);
    REQUIRE(tables.records == 16);
    CHECK(groups_within(tables, -8, 0, 4, 16) == 0);
    CHECK(groups_within(tables, -8, 0, 4, 17) == 1);
}
