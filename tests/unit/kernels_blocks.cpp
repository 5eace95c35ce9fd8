// SPDX-License-Identifier: BSD-3-Clause
// The kernels of scattered blocks, on each instruction set of this CPU.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "battery.hpp"
#include "kernels/blocks.hpp"
#include "kernels/cpu.hpp"
#include "kernels/permutation.hpp"

using namespace vecmpi;
using namespace vecmpi::kernels;
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

TEST_CASE("a long block is copied from its end byte for byte", "[kernels]") {
    std::mt19937 random(std::random_device{}());
    std::vector<unsigned char> from(1 << 15), to(from.size());
    for (unsigned char& byte : from) byte = static_cast<unsigned char>(random());
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{511}, size_t{512}, size_t{513},
                               size_t{2049}, size_t{10240}, from.size()}) {
        CAPTURE(bytes);
        std::fill(to.begin(), to.end(), 7);
        copy_from_end(to.data(), from.data(), bytes);
        const auto end = to.begin() + static_cast<ptrdiff_t>(bytes);
        CHECK(std::equal(to.begin(), end, from.begin()));
        CHECK(std::all_of(end, to.end(), [](unsigned char byte) { return byte == 7; }));
    }
}

TEST_CASE("two places are unlucky by their distance within a page", "[kernels]") {
    const std::vector<unsigned char> memory(4 * 4096);
    const unsigned char* const from = memory.data() + 2 * 4096;
    for (const ptrdiff_t whole_pages : {-4096, 0, 4096}) {
        for (const ptrdiff_t behind : {1, 16, 31})
            CHECK(are_unlucky(from + whole_pages + behind, from));
        for (const ptrdiff_t behind : {-31, -1, 0, 32, 64, 2048})
            CHECK_FALSE(are_unlucky(from + whole_pages + behind, from));
    }
}

TEST_CASE("bytes are copied whole wherever they lie", "[kernels]") {
    std::mt19937 random(std::random_device{}());
    std::vector<unsigned char> from(1 << 16), to(from.size());
    for (unsigned char& byte : from) byte = static_cast<unsigned char>(random());
    for (size_t i = 0; i < 400; ++i) {
        const size_t behind = i % 40, bytes = random() % 12000;
        // So many bytes behind the source within a page.
        const uintptr_t distance = reinterpret_cast<uintptr_t>(from.data()) -
                                   reinterpret_cast<uintptr_t>(to.data()) + behind;
        const size_t at = distance % 4096;
        CAPTURE(behind, bytes);
        std::fill(to.begin(), to.end(), 7);
        copy_bytes(to.data() + at, from.data(), bytes);
        CHECK(std::equal(from.begin(), from.begin() + static_cast<ptrdiff_t>(bytes),
                         to.begin() + static_cast<ptrdiff_t>(at)));
        const auto is_untouched = [](unsigned char byte) { return byte == 7; };
        const auto target = to.begin() + static_cast<ptrdiff_t>(at);
        CHECK(std::all_of(to.begin(), target, is_untouched));
        CHECK(std::all_of(target + static_cast<ptrdiff_t>(bytes), to.end(), is_untouched));
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

// ---- the host's table
// ----------------------------------------------------------------------------

TEST_CASE("which kernel: the user's word, then the host's table, then what is built in",
          "[kernels][profile]") {
    PackLimits limits;
    for (const bool built_in : {true, false})
        CHECK(is_chosen(limits, PackKernel::pack_permute, 8, 16, built_in) == built_in);
    limits.table.entry(PackKernel::pack_permute, block_class(8), Distance::dense) = PackVerdict::no;
    limits.table.entry(PackKernel::pack_gather, block_class(8), Distance::dense) = PackVerdict::yes;
    CHECK_FALSE(is_chosen(limits, PackKernel::pack_permute, 8, 16, true));
    CHECK(is_chosen(limits, PackKernel::pack_gather, 8, 16, false));
    CHECK(is_chosen(limits, PackKernel::pack_permute, 8, 17, true));
    CHECK(is_chosen(limits, PackKernel::pack_permute, 4, 8, true));
    CHECK(is_chosen(limits, PackKernel::unpack_permute, 8, 16, true));
    limits.any_way = false;
    limits.only = PackWay::permute;
    CHECK(is_chosen(limits, PackKernel::pack_permute, 8, 16, false));
    CHECK_FALSE(is_chosen(limits, PackKernel::pack_gather, 8, 16, true));
    limits.only = PackWay::block;
    for (const PackKernel kernel : {PackKernel::pack_permute, PackKernel::pack_gather,
                                    PackKernel::masked, PackKernel::columns})
        CHECK_FALSE(is_chosen(limits, kernel, 8, 16, true));
}

TEST_CASE("copiers follow the host's table, and their bytes stay the same", "[kernels][profile]") {
    const std::vector<Block> blocks{{0, 4}};
    const std::vector<int64_t> offsets{0, 12, 20, 28};
    PackLimits built_in, refused, wanted;
    built_in.isa = refused.isa = wanted.isa = best_isa();
    for (size_t kernel = 0; kernel < number_of_pack_kernels; ++kernel)
        for (const Distance distance : {Distance::dense, Distance::open, Distance::sparse}) {
            const auto of = static_cast<PackKernel>(kernel);
            refused.table.entry(of, block_class(4), distance) = PackVerdict::no;
            wanted.table.entry(of, block_class(4), distance) = PackVerdict::yes;
        }
    const auto ways = [&](const PackLimits& limits) {
        std::vector<PackWay> found;
        for (const Direction direction : {Direction::pack, Direction::unpack}) {
            found.push_back(RecordCopier(blocks, 8, limits).way(direction));
            found.push_back(TableCopier(offsets, 4, limits).way(direction));
        }
        return found;
    };
    CHECK(ways(refused) == std::vector<PackWay>(4, PackWay::block));
    PackLimits permutes{best_isa(), false, PackWay::permute, {}};
    PackLimits gathers{best_isa(), false, PackWay::gather, {}};
    for (const Direction direction : {Direction::pack, Direction::unpack}) {
        CHECK(RecordCopier(blocks, 8, wanted).way(direction) ==
              RecordCopier(blocks, 8, permutes).way(direction));
        CHECK(TableCopier(offsets, 4, wanted).way(direction) ==
              TableCopier(offsets, 4, gathers).way(direction));
    }

    std::vector<char> memory(8 * 100);
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<char>(i * 7);
    const auto packed = [&](const PackLimits& limits) {
        std::vector<char> stream(4 * 100);
        RecordCopier(blocks, 8, limits).copy(Direction::pack, stream.data(), memory.data(), 100);
        return stream;
    };
    CHECK(packed(refused) == packed(built_in));
    CHECK(packed(wanted) == packed(built_in));
}
