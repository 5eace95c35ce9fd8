// SPDX-License-Identifier: BSD-3-Clause
// The kernels of scattered blocks, on each instruction set of this CPU.
#include <catch2/catch.hpp>
#include <random>

#include "battery.hpp"
#include "kernels/cpu.hpp"
#include "kernels/permutation.hpp"

using namespace vecmpi;
using namespace vecmpi::kernels;

TEST_CASE("scattered blocks are copied byte for byte", "[kernels]") {
    battery::Options options;
    options.seed = std::random_device()();
    options.quick = true;
    for (const Isa isa : {Isa::scalar, Isa::sse4, Isa::avx2, Isa::avx512, Isa::neon, Isa::sve}) {
        if (capped_isa(best_isa(), isa) != isa) continue;
        CAPTURE(options.seed, isa_name(isa));
        const battery::Tally tally = battery::check_blocks(isa, options);
        INFO(tally.complaints);
        CHECK(tally.failed == 0);
        CHECK(tally.passed > 1000);
    }
}

namespace {

struct ChoiceCase {
    const char* what;
    std::vector<Block> blocks;
    int64_t stride;
    size_t tables, records, lines;
};

template <class Tables, class Choose, class Make>
void check_choices(const std::vector<ChoiceCase>& cases, Choose choose, Make make) {
    for (const ChoiceCase& c : cases) {
        CAPTURE(c.what);
        std::vector<Tables> tables(4);
        const PermutationChoice choice = choose(c.blocks, c.stride);
        REQUIRE(choice.number == c.tables);
        if (c.tables == 0) continue;
        make(c.blocks, c.stride, choice, tables.data());
        CHECK(tables[0].records == c.records);
        CHECK(tables[0].lines == c.lines);
    }
}

}  // namespace

TEST_CASE("permutations: where they can serve, and how many records they take", "[kernels]") {
    check_choices<Permutation>({{"1 of 2 ints", {{0, 4}}, 8, 1, 16, 2},
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
                                {"a page between records", {{0, 4}, {8, 8}}, 8192, 0, 0, 0}},
                               choose_permutations, make_permutations);
}

TEST_CASE("shuffles: where they can serve, and how many records they take", "[kernels]") {
    std::vector<Block> far = {{400, 1}};  // its register holds 15 of the bytes before it
    for (int64_t i = 15; i >= 0; --i) far.insert(far.begin(), {2 * i, 1});
    check_choices<Shuffle>(
        {{"1 of 2 bytes", {{0, 1}}, 2, 1, 16, 2},
         {"1 of 2 bytes, down", {{0, 1}}, -2, 1, 16, 2},
         {"1 of 8 bytes", {{0, 1}}, 8, 1, 16, 8},
         {"1 of 64 bytes: too far apart", {{0, 1}}, 64, 0, 0, 0},
         {"1 of 2 ints", {{0, 4}}, 8, 1, 4, 2},
         {"2 of 3 ints: faster one by one", {{0, 8}}, 12, 0, 0, 0},
         {"1 of 2 complex: no less moves", {{0, 16}}, 32, 0, 0, 0},
         {"int, gap, double", {{0, 4}, {8, 8}}, 16, 1, 1, 1},
         {"two parts", {{0, 1}, {2, 2}, {8, 4}, {16, 8}, {24, 1}, {28, 4}}, 40, 2, 1, 2},
         {"a last part that reaches too far", far, 420, 0, 0, 0},
         {"on each other: no table says which", {{0, 4}}, 2, 0, 0, 0},
         {"a page between records", {{0, 4}, {8, 8}}, 8192, 0, 0, 0}},
        choose_shuffles, make_shuffles);
}

TEST_CASE("groups are read whole only within the span of the records", "[kernels]") {
    Permutation tables;
    const std::vector<Block> blocks = {{0, 4}};
    make_permutations(blocks, 8, choose_permutations(blocks, 8), &tables);
    REQUIRE(tables.records == 16);  // 124 bytes, 128 read
    CHECK(groups_within(window_of(tables), 8, 0, 4, 0) == 0);
    CHECK(groups_within(window_of(tables), 8, 0, 4, 15) == 0);
    CHECK(groups_within(window_of(tables), 8, 0, 4, 16) == 0);
    CHECK(groups_within(window_of(tables), 8, 0, 4, 17) == 1);
    CHECK(groups_within(window_of(tables), 8, 0, 4, 33) == 2);
    make_permutations(blocks, -8, choose_permutations(blocks, -8), &tables);
    REQUIRE(tables.records == 16);
    CHECK(groups_within(window_of(tables), -8, 0, 4, 16) == 0);
    CHECK(groups_within(window_of(tables), -8, 0, 4, 17) == 1);
}
