// SPDX-License-Identifier: BSD-3-Clause
// Plans: which kernel moves what, and that random type maps are moved byte for byte, whole and in
// parts.
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <random>

#include "datatype/plan_making.hpp"

using namespace vecmpi;
using namespace vecmpi::datatype;

namespace {

using Random = std::mt19937;

int64_t draw(Random& random, int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// The stream of a type map: where each of its bytes lies. Knows none of the rules.
void walk(const TypeMap& map, int64_t at, std::vector<int64_t>& bytes) {
    at += map.offset;
    for (int64_t i = 0; map.kind == TypeMap::Kind::dense && i < map.bytes; ++i)
        bytes.push_back(at + i);
    for (int64_t i = 0; map.kind == TypeMap::Kind::strided && i < map.count; ++i)
        walk(map.parts[0], at + i * map.stride, bytes);
    for (const int64_t offset : map.offsets) walk(map.parts[0], at + offset, bytes);
    for (const kernels::Block& block : map.blocks)
        for (int64_t i = 0; i < block.bytes; ++i) bytes.push_back(at + block.offset + i);
    if (map.kind == TypeMap::Kind::sequence)
        for (const TypeMap& part : map.parts) walk(part, at, bytes);
}

// Without overlaps: each way to make one leaves room for what it copies.
TypeMap random_map(Random& random, int depth) {
    if (depth == 0) return dense(draw(random, 1, 20));
    const TypeMap inner = random_map(random, depth - 1);
    const Bounds bounds = bounds_of(inner);
    const int64_t span = bounds.high - bounds.low;
    switch (draw(random, 0, 3)) {
        case 0: {
            const int64_t sign = draw(random, 0, 3) == 0 ? -1 : 1;
            return repeated(inner, draw(random, 1, 40), sign * (span + draw(random, 0, 30)));
        }
        case 1: {
            std::vector<int64_t> offsets;
            int64_t end = draw(random, -50, 50);
            for (int64_t i = draw(random, 1, 30); i > 0; --i) {
                offsets.push_back(end);
                end += span + draw(random, 0, 9);
            }
            return at_places(inner, offsets);
        }
        case 2: {
            const TypeMap other = random_map(random, depth - 1);
            const int64_t after = bounds.high + draw(random, 0, 20) - bounds_of(other).low;
            return joined({inner, moved(other, after)});
        }
        default: {
            std::vector<kernels::Block> blocks;
            int64_t end = 0;
            for (int64_t i = draw(random, 1, 50); i > 0; --i) {
                blocks.push_back({end, draw(random, 1, 20)});
                end += blocks.back().bytes + draw(random, 0, 9);
            }
            return of_blocks(blocks);
        }
    }
}

struct Buffers {
    std::vector<unsigned char> memory, stream;
    unsigned char* origin = nullptr;
    std::vector<int64_t> places;
};

Buffers make_buffers(Random& random, const TypeMap& map, int64_t extent, int64_t count) {
    Buffers made;
    for (int64_t i = 0; i < count; ++i) walk(map, i * extent, made.places);
    const auto [low, high] = std::minmax_element(made.places.begin(), made.places.end());
    made.memory.resize(static_cast<size_t>(*high - *low + 1));
    made.stream.resize(made.places.size());
    for (auto* bytes : {&made.memory, &made.stream})
        for (unsigned char& byte : *bytes) byte = static_cast<unsigned char>(random());
    made.origin = made.memory.data() - *low;
    return made;
}

void check_map(Random& random, const TypeMap& map, int64_t extent, int64_t count,
               const kernels::PackLimits& limits) {
    Counter why{};
    auto steps = make_steps(map, extent, limits, &why);
    REQUIRE(steps);
    const PackPlan plan(std::move(steps));
    Buffers b = make_buffers(random, map, extent, count);
    const auto bytes = static_cast<int64_t>(b.stream.size());
    REQUIRE(plan.bytes() * count == bytes);
    std::vector<unsigned char> expected;
    for (const int64_t place : b.places) expected.push_back(b.origin[place]);
    std::vector<unsigned char> packed(b.stream.size());
    plan.copy_all(kernels::Direction::pack, packed.data(), b.origin, count);
    CHECK(packed == expected);
    std::fill(packed.begin(), packed.end(), 0);  // in parts
    for (int64_t first = 0; first < bytes;) {
        const int64_t part = std::min(bytes - first, draw(random, 1, 1 + bytes / 3));
        plan.copy(kernels::Direction::pack, packed.data() + first, b.origin, count, first, part);
        first += part;
    }
    CHECK(packed == expected);
    if (count > plan.most_to_unpack()) return;
    std::vector<unsigned char> image = b.memory;
    unsigned char* const in_image = image.data() + (b.origin - b.memory.data());
    for (size_t i = 0; i < b.places.size(); ++i) in_image[b.places[i]] = b.stream[i];
    plan.copy_all(kernels::Direction::unpack, b.stream.data(), b.origin, count);
    CHECK(b.memory == image);
    for (int64_t first = 0; first < bytes;) {
        const int64_t part = std::min(bytes - first, draw(random, 1, 1 + bytes / 3));
        plan.copy(kernels::Direction::unpack, b.stream.data() + first, b.origin, count, first,
                  part);
        first += part;
    }
    CHECK(b.memory == image);
}

// So many, at no one distance.
std::vector<int64_t> places(int64_t number) {
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < number; ++i) offsets.push_back(10000 * i + 8 * (i % 3));
    return offsets;
}

const std::vector<PackMode> modes = {PackMode::automatic, PackMode::on, PackMode::block,
                                     PackMode::permute, PackMode::gather};

}  // namespace

TEST_CASE("random type maps are packed and unpacked, whole and in parts", "[datatype][type_maps]") {
    const unsigned seed = std::random_device()();
    CAPTURE(seed);
    Random random(seed);
    for (int i = 0; i < 400; ++i) {
        const TypeMap map = random_map(random, static_cast<int>(draw(random, 0, 3)));
        const Bounds bounds = bounds_of(map);
        const int64_t span = bounds.high - bounds.low;
        if (map.bytes > 100000 || span > 400000) continue;
        const int64_t extents[] = {span, span + draw(random, 0, 99), -span, draw(random, 1, 16)};
        const int64_t extent = extents[draw(random, 0, 3)];
        const int64_t count = draw(random, 0, 1) == 0 ? 1 : draw(random, 2, 30);
        for (const PackMode mode : modes)
            for (const IsaChoice isa : {IsaChoice::automatic, IsaChoice::scalar})
                check_map(random, map, extent, count, pack_limits(mode, isa));
    }
}

TEST_CASE("columns of a matrix, of every size", "[datatype]") {
    const unsigned seed = std::random_device()();
    CAPTURE(seed);
    Random random(seed);
    for (const int64_t element : {1, 2, 3, 4, 8, 12, 16})
        for (const int64_t rows : {4, 7, 8, 16, 33, 70})
            for (const int64_t columns : {1, 3, 8, 16, 31, 40})
                for (const int64_t gap : {0, 5}) {
                    const TypeMap column = repeated(dense(element), rows, 40 * (element + gap) + 7);
                    check_map(random, column, element + gap, columns,
                              pack_limits(PackMode::automatic, IsaChoice::automatic));
                }
}

TEST_CASE("the kernel follows from the type map", "[datatype]") {
    struct Case {
        const char* what;
        TypeMap map;
        int64_t extent;
        PackStep::Kind one, copies;
    };
    using Kind = PackStep::Kind;
    std::vector<int64_t> random_places = {0, 5, 40, 41, 90};
    for (int64_t i = 0; i < 100; ++i) random_places.push_back(100 + 7 * i * i);
    for (const Case& c : std::vector<Case>{
             {"dense with a gap behind", dense(12), 16, Kind::dense, Kind::records},
             {"a long row", repeated(dense(4), 1000, 8), 8000, Kind::records, Kind::records},
             {"a long row with a shorter gap behind", repeated(dense(4), 1000, 8), 7996,
              Kind::records, Kind::loop},
             {"a struct", of_blocks({{0, 4}, {8, 8}}), 16, Kind::records, Kind::records},
             {"a column", repeated(dense(8), 100, 800), 8, Kind::records, Kind::grid},
             {"a column of bytes", repeated(dense(1), 100, 800), 1, Kind::records,
              kernels::best_isa() == kernels::Isa::scalar ? Kind::loop : Kind::grid},
             {"a column of bytes, rows near", repeated(dense(1), 100, 16), 1, Kind::records,
              Kind::loop},
             {"a table", at_places(dense(1), random_places), 1 << 20, Kind::table, Kind::table},
             {"vectors at places", at_places(repeated(dense(4), 100, 8), {0, 5000, 6000}), 9000,
              Kind::places, Kind::places}}) {
        CAPTURE(c.what);
        const kernels::PackLimits limits = pack_limits(PackMode::automatic, IsaChoice::automatic);
        PlanRoom room;
        CHECK(plan_once(c.map, limits, room).kind == c.one);
        CHECK(plan_copies(c.map, c.extent, limits, room).kind == c.copies);
    }
}

TEST_CASE("a column is moved block by block where this host's table says so",
          "[datatype][profile]") {
    PackTable table;
    table.entry(PackKernel::columns, block_class(8), Distance::sparse) = PackVerdict::no;
    const kernels::PackLimits limits =
        pack_limits(PackMode::automatic, IsaChoice::automatic, table);
    PlanRoom room;
    const auto kind_of = [&](int64_t bytes, int64_t row) {
        return plan_copies(repeated(dense(bytes), 100, row), bytes, limits, room).kind;
    };
    CHECK(kind_of(8, 800) == PackStep::Kind::loop);
    CHECK(kind_of(8, 8000) == PackStep::Kind::grid);
    CHECK(kind_of(4, 800) == PackStep::Kind::grid);
}

TEST_CASE("a kind of kernel that was asked for is the only one beside blocks", "[datatype]") {
    const unsigned seed = std::random_device()();
    CAPTURE(seed);
    Random random(seed);
    const std::map<PackMode, MovedBy> kinds = {{PackMode::block, MovedBy::blocks},
                                               {PackMode::permute, MovedBy::permutes},
                                               {PackMode::gather, MovedBy::gathers}};
    std::vector<TypeMap> maps = {repeated(dense(8), 100, 800), repeated(dense(4), 7, 800)};
    for (int i = 0; i < 100; ++i)
        maps.push_back(random_map(random, static_cast<int>(draw(random, 0, 3))));
    for (const TypeMap& map : maps)
        for (const auto& [mode, kind] : kinds)
            for (const int64_t extent : {int64_t{8}, int64_t{1} << 20}) {
                PlanRoom room;
                const PackStep step =
                    plan_copies(map, extent, pack_limits(mode, IsaChoice::automatic), room);
                for (const kernels::Direction direction :
                     {kernels::Direction::pack, kernels::Direction::unpack}) {
                    const MovedBy by = moved_by(step, direction);
                    CHECK((by == kind || by == MovedBy::blocks));
                }
            }
}

TEST_CASE("no wider instruction set is used than VECMPI_ISA allows", "[datatype]") {
    CHECK(pack_limits(PackMode::automatic, IsaChoice::off).isa == kernels::Isa::scalar);
    CHECK(pack_limits(PackMode::automatic, IsaChoice::automatic).isa == kernels::best_isa());
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < 100; ++i) offsets.push_back(8 * i * i);
    for (const IsaChoice isa :
         {IsaChoice::off, IsaChoice::scalar, IsaChoice::sse4, IsaChoice::avx2})
        for (const PackMode mode : modes) {
            const kernels::PackLimits limits = pack_limits(mode, isa);
            CHECK(limits.isa < kernels::Isa::avx512);
            const kernels::RecordCopier records({{0, 4}}, 8, limits);
            const kernels::TableCopier table(offsets, 8, limits);
            const bool may_permute = limits.any_way || limits.only == kernels::PackWay::permute;
            const bool shuffles = may_permute && limits.isa != kernels::Isa::scalar;
            CHECK(records.way(kernels::Direction::pack) ==
                  (shuffles ? kernels::PackWay::permute : kernels::PackWay::block));
            CHECK(records.way(kernels::Direction::unpack) == kernels::PackWay::block);
            for (const kernels::Direction direction :
                 {kernels::Direction::pack, kernels::Direction::unpack})
                CHECK(table.way(direction) == kernels::PackWay::block);
        }
}

TEST_CASE("parts of a table in no order", "[datatype]") {
    constexpr int64_t count = 20000, apart = 1024;  // more than a window, and 20 MB
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < count; ++i) offsets.push_back(i * 7919 % count * apart);
    const kernels::TableCopier copier(offsets, 8, pack_limits(PackMode::automatic, IsaChoice::off));
    std::vector<char> memory(count * apart), packed(count * 8), parts(count * 8);
    for (int64_t i = 0; i < count; ++i)
        std::memcpy(&memory[static_cast<size_t>(offsets[static_cast<size_t>(i)])], &i, 8);
    copier.copy(kernels::Direction::pack, packed.data(), memory.data(), 0, packed.size());
    for (size_t i = 0; i < count; ++i) {
        int64_t value = 0;
        std::memcpy(&value, &packed[8 * i], 8);
        REQUIRE(value == static_cast<int64_t>(i));
    }
    for (size_t first = 0; first < parts.size(); first += 8191)
        copier.copy(kernels::Direction::pack, &parts[first], memory.data(), first,
                    std::min<size_t>(8191, parts.size() - first));
    CHECK(parts == packed);
}

TEST_CASE("tables are kept once", "[datatype]") {
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < 1000; ++i) offsets.push_back(8 * i * i);
    const kernels::PackLimits limits = pack_limits(PackMode::automatic, IsaChoice::automatic);
    Counter why{};
    CHECK_FALSE(make_steps(at_places(dense(8), offsets), 1 << 30, limits, &why)->one);
    CHECK_FALSE(
        make_steps(repeated(at_places(dense(8), offsets), 3, 1 << 26), 1 << 30, limits, &why)->one);
    CHECK(make_steps(repeated(dense(8), 100, 800), 8, limits, &why)->one);
}

TEST_CASE("a plan of too large tables is declined", "[datatype]") {
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i <= static_cast<int64_t>(most_plan_bytes / 8); ++i)
        offsets.push_back(i * i);
    Counter why{};
    CHECK_FALSE(make_steps(at_places(dense(1), offsets), 1 << 30, {}, &why));
    CHECK(why == Counter::decline_table);
    // Rows of more blocks than are listed: many records, with permutations of their own or without.
    std::vector<TypeMap> rows;
    for (int64_t i = 0; i < 80000; ++i)
        rows.push_back(moved(repeated(dense(4), 100 + i % 90, 8), 4000 * i));
    const TypeMap map = joined(rows);
    CHECK(map.kind == TypeMap::Kind::sequence);
    why = {};
    CHECK_FALSE(
        make_steps(map, 1 << 30, pack_limits(PackMode::automatic, IsaChoice::automatic), &why));
    CHECK(why == Counter::decline_table);
}

TEST_CASE("short parts at places, and rows of different lengths, are a table", "[datatype]") {
    const kernels::PackLimits limits = pack_limits(PackMode::automatic, IsaChoice::automatic);
    std::vector<TypeMap> rows, few;
    for (int64_t i = 0; i < 100; ++i)
        rows.push_back(moved(repeated(dense(4), i < 99 ? 4 : 100, 8), 1000 * i));
    for (int64_t i = 0; i < 2; ++i)
        few.push_back(moved(repeated(dense(4), 3 + 97 * i, 8), 900 * i));
    const std::vector<TypeMap> tables = {at_places(repeated(dense(8), 2, 56), places(1000)),
                                         at_places(repeated(dense(8), 3, 1600), places(1000)),
                                         at_places(repeated(dense(16), 5, 72), places(200)),
                                         joined(rows)};
    for (const TypeMap& map : tables) {
        PlanRoom room;
        CHECK(plan_once(map, limits, room).kind == PackStep::Kind::table);
    }
    CHECK(joined(few).kind == TypeMap::Kind::sequence);
}
