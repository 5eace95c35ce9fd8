// SPDX-License-Identifier: BSD-3-Clause
// From descriptions of datatypes to type maps in canonical form.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cfloat>
#include <numeric>
#include <string>

#include "datatype/decode.hpp"
#include "datatype/dense_types.hpp"

using namespace vecmpi;
using namespace vecmpi::datatype;

namespace {

using Kind = TypeMap::Kind;

TypeTree named(MPI_Datatype type, int64_t size) {
    TypeTree tree;
    tree.named = type;
    tree.size = tree.extent = size;
    return tree;
}
const TypeTree an_int = named(MPI_INT, 4);
const TypeTree a_double = named(MPI_DOUBLE, 8);

// extent: of the type itself, which the library knows.
TypeTree made(int combiner, std::vector<int64_t> integers, std::vector<TypeTree> types,
              std::vector<int64_t> addresses = {}, int64_t extent = 0) {
    TypeTree tree;
    tree.combiner = combiner;
    tree.integers = std::move(integers);
    tree.addresses = std::move(addresses);
    tree.types = std::move(types);
    tree.extent = extent;
    return tree;
}

TypeMap at(int64_t offset, TypeMap map) { return moved(std::move(map), offset); }

// The bytes of a type map in the order of the stream, by a walk that knows none of the rules.
void walk(const TypeMap& map, int64_t at, std::vector<int64_t>& bytes) {
    at += map.offset;
    if (map.kind == Kind::dense)
        for (int64_t i = 0; i < map.bytes; ++i) bytes.push_back(at + i);
    if (map.kind == Kind::strided)
        for (int64_t i = 0; i < map.count; ++i) walk(map.parts[0], at + i * map.stride, bytes);
    for (const int64_t offset : map.offsets) walk(map.parts[0], at + offset, bytes);
    for (const kernels::Block& block : map.blocks)
        for (int64_t i = 0; i < block.bytes; ++i) bytes.push_back(at + block.offset + i);
    if (map.kind == Kind::sequence)
        for (const TypeMap& part : map.parts) walk(part, at, bytes);
}

std::vector<int64_t> bytes_of(const TypeMap& map) {
    std::vector<int64_t> bytes;
    walk(map, 0, bytes);
    return bytes;
}

}  // namespace

TEST_CASE("each combiner has its canonical map", "[datatype]") {
    const TypeTree row = made(MPI_COMBINER_VECTOR, {3, 1, 2}, {an_int}, {}, 20);
    const TypeTree wide = made(MPI_COMBINER_RESIZED, {}, {an_int}, {0, 16}, 16);
    struct Case {
        const char* what;
        TypeTree tree;
        TypeMap map;
    };
    const std::vector<Case> cases = {
        {"named", an_int, dense(4)},
        {"a pair with a gap behind", named(MPI_DOUBLE_INT, 12), dense(12)},
        {"a pair with a gap between", named(MPI_SHORT_INT, 6), of_blocks({{0, 2}, {4, 4}})},
        {"dup", made(MPI_COMBINER_DUP, {}, {an_int}), dense(4)},
        {"contiguous", made(MPI_COMBINER_CONTIGUOUS, {5}, {an_int}), dense(20)},
        {"contiguous, nothing", made(MPI_COMBINER_CONTIGUOUS, {0}, {an_int}), {}},
        {"contiguous of wider ones", made(MPI_COMBINER_CONTIGUOUS, {5}, {wide}),
         repeated(dense(4), 5, 16)},
        {"vector", made(MPI_COMBINER_VECTOR, {3, 2, 5}, {an_int}), repeated(dense(8), 3, 20)},
        {"vector without gaps", made(MPI_COMBINER_VECTOR, {3, 2, 2}, {an_int}), dense(24)},
        {"vector of one block", made(MPI_COMBINER_VECTOR, {1, 2, 9}, {an_int}), dense(8)},
        {"vector of empty blocks", made(MPI_COMBINER_VECTOR, {3, 0, 9}, {an_int}), {}},
        {"vector that goes down", made(MPI_COMBINER_VECTOR, {3, 1, -2}, {an_int}),
         repeated(dense(4), 3, -8)},
        {"hvector", made(MPI_COMBINER_HVECTOR, {3, 2}, {an_int}, {11}), repeated(dense(8), 3, 11)},
        {"vectors that continue", made(MPI_COMBINER_HVECTOR, {4, 1}, {row}, {24}),
         repeated(dense(4), 12, 8)},
        {"vectors within a vector", made(MPI_COMBINER_HVECTOR, {4, 1}, {row}, {100}),
         repeated(repeated(dense(4), 3, 8), 4, 100)},
        {"indexed at one distance", made(MPI_COMBINER_INDEXED, {3, 1, 1, 1, 2, 5, 8}, {an_int}),
         at(8, repeated(dense(4), 3, 12))},
        {"indexed with neighbours", made(MPI_COMBINER_INDEXED, {3, 1, 2, 1, 0, 1, 9}, {an_int}),
         of_blocks({{0, 12}, {36, 4}})},
        {"indexed with an empty block", made(MPI_COMBINER_INDEXED, {3, 1, 0, 1, 0, 7, 9}, {an_int}),
         repeated(dense(4), 2, 36)},
        {"hindexed", made(MPI_COMBINER_HINDEXED, {2, 1, 2}, {an_int}, {100, 3}),
         of_blocks({{100, 4}, {3, 8}})},
        {"indexed_block", made(MPI_COMBINER_INDEXED_BLOCK, {3, 2, 0, 9, 4}, {an_int}),
         of_blocks({{0, 8}, {36, 8}, {16, 8}})},
        {"hindexed_block", made(MPI_COMBINER_HINDEXED_BLOCK, {2, 1}, {an_int}, {-4, 9}),
         of_blocks({{-4, 4}, {9, 4}})},
        {"indexed vectors", made(MPI_COMBINER_INDEXED_BLOCK, {3, 1, 0, 9, 4}, {row}),
         at_places(repeated(dense(4), 3, 8), {0, 180, 80})},
        {"struct of one type", made(MPI_COMBINER_STRUCT, {2, 1, 1}, {an_int, an_int}, {0, 4}),
         dense(8)},
        {"struct", made(MPI_COMBINER_STRUCT, {2, 1, 1}, {an_int, a_double}, {0, 8}),
         of_blocks({{0, 4}, {8, 8}})},
        {"struct with an empty member",
         made(MPI_COMBINER_STRUCT, {3, 1, 0, 1}, {an_int, a_double, an_int}, {0, 800, 16}),
         repeated(dense(4), 2, 16)},
        {"subarray in C's order",
         made(MPI_COMBINER_SUBARRAY, {2, 6, 8, 2, 3, 1, 4, MPI_ORDER_C}, {an_int}),
         at(48, repeated(dense(12), 2, 32))},
        {"subarray in Fortran's order",
         made(MPI_COMBINER_SUBARRAY, {2, 8, 6, 3, 2, 4, 1, MPI_ORDER_FORTRAN}, {an_int}),
         at(48, repeated(dense(12), 2, 32))},
        {"subarray of whole rows",
         made(MPI_COMBINER_SUBARRAY, {2, 6, 8, 2, 8, 1, 0, MPI_ORDER_C}, {an_int}),
         at(32, dense(64))},
    };
    for (const Case& c : cases) {
        CAPTURE(c.what);
        const auto map = decode(c.tree);
        REQUIRE(map);
        CHECK(*map == c.map);
    }
}

TEST_CASE("which streams lie in memory as they are", "[datatype]") {
    const auto stream_of = [](const TypeTree& tree) {
        return dense_stream(*decode(tree), tree.extent);
    };
    const TypeTree pair = made(MPI_COMBINER_CONTIGUOUS, {2}, {a_double}, {}, 16);
    const TypeTree structure = made(MPI_COMBINER_STRUCT, {2, 2, 1}, {an_int, a_double}, {0, 8}, 16);
    CHECK(stream_of(pair)->is_of_elements);
    CHECK(stream_of(pair)->low == 0);
    CHECK(stream_of(structure)->is_of_elements);
    const TypeTree absolute =
        made(MPI_COMBINER_STRUCT, {2, 2, 1}, {an_int, a_double}, {4000, 4008}, 16);
    CHECK(stream_of(absolute)->low == 4000);
    const TypeTree wide = made(MPI_COMBINER_RESIZED, {}, {pair}, {0, 24}, 24);
    CHECK_FALSE(stream_of(wide)->is_of_elements);
    const TypeTree backwards = made(MPI_COMBINER_INDEXED, {2, 1, 1, 1, 0}, {an_int}, {}, 8);
    CHECK_FALSE(stream_of(backwards).has_value());
    CHECK_FALSE(stream_of(made(MPI_COMBINER_VECTOR, {3, 1, 2}, {an_int}, {}, 20)).has_value());
    CHECK_FALSE(stream_of(made(MPI_COMBINER_CONTIGUOUS, {0}, {an_int})).has_value());
}

TEST_CASE("large-count types have their arguments among the counts", "[datatype]") {
    TypeTree vector = made(MPI_COMBINER_VECTOR, {}, {an_int});
    vector.counts = {3, 2, 5};
    CHECK(*decode(vector) == repeated(dense(8), 3, 20));
    TypeTree far = made(MPI_COMBINER_HINDEXED, {}, {an_int});
    far.counts = {2, 1, 1, 0, int64_t{1} << 40};
    CHECK(*decode(far) == repeated(dense(4), 2, int64_t{1} << 40));
}

TEST_CASE("distributed arrays: every element belongs to one process", "[datatype]") {
    struct Dimension {
        int64_t size, way, block, places;
    };
    const auto cyclic = MPI_DISTRIBUTE_CYCLIC, block = MPI_DISTRIBUTE_BLOCK,
               none = MPI_DISTRIBUTE_NONE, usual = MPI_DISTRIBUTE_DFLT_DARG;
    const std::vector<std::vector<Dimension>> cases = {{{10, cyclic, 3, 2}},
                                                       {{10, cyclic, usual, 3}},
                                                       {{10, block, usual, 3}},
                                                       {{3, block, 2, 4}},
                                                       {{7, block, usual, 2}, {5, cyclic, 2, 2}},
                                                       {{4, none, usual, 1}, {9, cyclic, 2, 3}}};
    for (const auto& dimensions : cases)
        for (const int order : {MPI_ORDER_C, MPI_ORDER_FORTRAN}) {
            int64_t processes = 1, elements = 1;
            std::vector<int64_t> sizes, ways, blocks, places;
            for (const Dimension& d : dimensions) {
                processes *= d.places;
                elements *= d.size;
                sizes.push_back(d.size);
                ways.push_back(d.way);
                blocks.push_back(d.block);
                places.push_back(d.places);
            }
            std::vector<int64_t> all;
            for (int64_t rank = 0; rank < processes; ++rank) {
                std::vector<int64_t> integers = {processes, rank,
                                                 static_cast<int64_t>(dimensions.size())};
                for (const auto* list : {&sizes, &ways, &blocks, &places})
                    integers.insert(integers.end(), list->begin(), list->end());
                integers.push_back(order);
                const auto map = decode(made(MPI_COMBINER_DARRAY, integers, {an_int}));
                REQUIRE(map);
                const auto bytes = bytes_of(*map);
                CHECK(std::is_sorted(bytes.begin(), bytes.end()));
                all.insert(all.end(), bytes.begin(), bytes.end());
            }
            std::sort(all.begin(), all.end());
            std::vector<int64_t> expected(static_cast<size_t>(4 * elements));
            std::iota(expected.begin(), expected.end(), 0);
            CHECK(all == expected);
        }
}

TEST_CASE("what a description multiplies is too large before it is copied", "[datatype]") {
    const auto rising = [](int64_t number, bool alternate) {  // an indexed type's arguments
        std::vector<int64_t> integers = {number};
        for (int64_t i = 0; i < number; ++i) integers.push_back(alternate ? 1 + i % 2 : 1);
        for (int64_t i = 0; i < number; ++i) integers.push_back(3 * i + i % 2);
        return integers;
    };
    TypeTree inner = made(MPI_COMBINER_INDEXED, rising(5000, false), {an_int}, {}, 70000);
    const TypeTree outer = made(MPI_COMBINER_INDEXED, rising(5000, true), {inner}, {}, 1 << 30);
    Described how = Described::fully;
    CHECK_FALSE(decode(outer, &how));  // 25 million offsets
    CHECK(how == Described::too_large);
    const TypeTree part = made(MPI_COMBINER_INDEXED, rising(150, true), {inner}, {}, 1 << 26);
    CHECK(decode(part, &how));
    CHECK(how == Described::fully);
    CHECK_FALSE(decode(made(MPI_COMBINER_STRUCT, {2, 1, 1}, {part, part}, {0, 1 << 27}), &how));
    CHECK(how == Described::too_large);
    CHECK_FALSE(decode(made(4711, {}, {an_int}), &how));
    CHECK(how == Described::unknown);
}

TEST_CASE("the padding of long doubles is known, however deep", "[datatype]") {
    constexpr auto bytes = static_cast<int64_t>(sizeof(long double));
    const auto of_size = [](TypeTree tree, int64_t size) {
        tree.size = size;
        return tree;
    };
    // What is padding of so many bytes of the stream, from `first` on: 'x' is a value's.
    const auto shown = [](const TypeTree& tree, int64_t first, int64_t number) {
        const std::optional<Padding> padding = padding_of(tree);
        REQUIRE(padding);
        std::string text(static_cast<size_t>(number), 'x');
        blank_padding(*padding, text.data(), first, number);
        std::replace(text.begin(), text.end(), '\0', '.');
        return text;
    };
    const bool has_padding = LDBL_MANT_DIG == 64;
    const std::string behind = has_padding ? "......" : "xxxxxx", value(10, 'x'), four(4, 'x');
    const TypeTree one = named(MPI_LONG_DOUBLE, bytes);
    const TypeTree complex = named(MPI_C_LONG_DOUBLE_COMPLEX, 2 * bytes);
    const TypeTree pair = named(MPI_LONG_DOUBLE_INT, bytes + 4);
    const TypeTree row = of_size(made(MPI_COMBINER_VECTOR, {3, 1, 2}, {one}), 3 * bytes);
    CHECK(decode(row) == repeated(dense(bytes), 3, 2 * bytes));
    CHECK(decode(pair) == dense(bytes + 4));
    CHECK(shown(an_int, 0, 8) == four + four);
    CHECK(shown(one, 0, 16) == value + behind);
    CHECK(shown(complex, 0, 32) == value + behind + value + behind);
    CHECK(shown(row, 12, 18) == behind.substr(2) + value + behind.substr(2));
    CHECK(shown(pair, 0, 24) == value + behind + four + four);
    CHECK(shown(pair, 20, 20) == value + behind + four);
    const TypeTree mixed =
        of_size(made(MPI_COMBINER_STRUCT, {2, 1, 2}, {an_int, one}, {0, 16}), 4 + 2 * bytes);
    CHECK(shown(mixed, 0, 40) == four + value + behind + value + behind + four);
    CHECK(shown(mixed, 36 + 14, 10) == behind + four);
    // A struct of long doubles alone needs no table, and any other only as large a one.
    const TypeTree many =
        of_size(made(MPI_COMBINER_STRUCT, {2, 5000, 1}, {row, one}, {0, 1 << 20}), 15001 * bytes);
    CHECK(shown(many, 0, 16) == value + behind);
    const TypeTree large = made(MPI_COMBINER_STRUCT, {2, 5000, 1}, {row, an_int}, {0, 1 << 20});
    CHECK(padding_of(large).has_value() != has_padding);
}

TEST_CASE("what is not understood has no map", "[datatype]") {
    CHECK_FALSE(decode(made(4711, {}, {an_int})));
    CHECK_FALSE(decode(made(MPI_COMBINER_CONTIGUOUS, {2}, {made(4711, {}, {an_int})})));
    CHECK_FALSE(decode(made(MPI_COMBINER_STRUCT, {1, 1}, {made(4711, {}, {an_int})}, {0})));
}

TEST_CASE("how many copies share no byte", "[datatype]") {
    const TypeMap row = repeated(dense(4), 10, 100);  // spans 904
    struct Case {
        const char* what;
        TypeMap map;
        int64_t extent, copies;
    };
    for (const Case& c : std::vector<Case>{
             {"dense", dense(8), 8, INT64_MAX},
             {"dense, too close", dense(8), 7, 1},
             {"dense, at one place", dense(8), 0, 1},
             {"a row and the next", row, 904, INT64_MAX},
             {"rows that overlap", row, 903, 1},
             {"columns side by side", row, 4, 25},
             {"columns with gaps", row, 7, 14},
             {"columns to the left", row, -4, 25},
             {"a row on itself", repeated(dense(8), 3, 4), 100, 0},
             {"a row in place", repeated(dense(8), 3, 0), 100, 0},
             {"rows of rows", repeated(row, 5, 1000), 4, 25},
             {"rows between rows", repeated(repeated(dense(4), 5, 1000), 10, 10), 5000, INT64_MAX},
             {"blocks", of_blocks({{0, 8}, {20, 4}, {10, 6}}), 24, INT64_MAX},
             {"blocks on each other", of_blocks({{0, 8}, {20, 4}, {6, 6}}), 24, 0},
             {"nothing", TypeMap{}, 0, INT64_MAX}}) {
        CAPTURE(c.what);
        CHECK(disjoint_copies(c.map, c.extent) == c.copies);
    }
}

TEST_CASE("how many blocks a copy has", "[datatype]") {
    const TypeMap row = repeated(dense(4), 10, 100);
    CHECK(number_of_blocks(TypeMap{}) == 1);
    CHECK(number_of_blocks(dense(8)) == 1);
    CHECK(number_of_blocks(row) == 10);
    CHECK(number_of_blocks(repeated(row, 5, 1000)) == 50);
    CHECK(number_of_blocks(of_blocks({{0, 8}, {20, 4}, {10, 6}})) == 3);
    CHECK(number_of_blocks(at_places(row, {0, 5000, 7000})) == 30);
    CHECK(number_of_blocks(joined({row, moved(dense(16), 5000)})) == 11);
}

TEST_CASE("where a piece of a message may end", "[datatype]") {
    const auto sized = [](int64_t size, TypeTree tree) {
        tree.size = size;
        return tree;
    };
    const auto list = [&](int64_t count, const TypeTree& of) {
        return sized(count * of.size, made(MPI_COMBINER_INDEXED_BLOCK, {count, 1}, {of}));
    };
    const auto both = [&](int64_t ones, const TypeTree& one, int64_t others,
                          const TypeTree& other) {
        return sized(ones * one.size + others * other.size,
                     made(MPI_COMBINER_STRUCT, {2, ones, others}, {one, other}, {0, 1 << 20}));
    };
    const TypeTree mixed = both(1, an_int, 1, a_double), nothing = list(0, an_int);
    const TypeTree pair = named(MPI_FLOAT_INT, 8), short_pair = named(MPI_SHORT_INT, 6);
    struct Case {
        const char* what;
        TypeTree tree;
        int64_t bytes;
    };
    for (const Case& c : std::initializer_list<Case>{
             {"a value", a_double, 8},
             {"values", list(300, a_double), 8},
             {"values of one size", both(1, an_int, 1, named(MPI_FLOAT, 4)), 4},
             {"lists of one size", both(300, a_double, 2, list(70, a_double)), 8},
             {"an int and a double", mixed, 12},
             {"many of these", list(1000, mixed), 12},
             {"lists of many", list(3, list(1000, mixed)), 12},
             {"ints before doubles", both(1000, an_int, 1000, a_double), 8},
             {"an odd number of ints before", both(1001, an_int, 1000, a_double), 0},
             {"few of these", both(3, an_int, 5, a_double), 52},
             {"doubles before an odd number of ints", both(1000, a_double, 1001, an_int), 0},
             {"many before another", both(2, list(1000, mixed), 2, a_double), 0},
             {"many before as many", both(2, list(1000, mixed), 3, a_double), 24},
             {"another's member is empty", both(0, mixed, 900, a_double), 8},
             {"an empty member", both(1, nothing, 900, a_double), 8},
             {"a pair", short_pair, 6},
             {"pairs", list(1000, short_pair), 6},
             {"a float and an int, and ints", both(1000, pair, 2, an_int), 8},
             {"ints, and a float and an int", both(1, an_int, 1000, pair), 0}}) {
        CAPTURE(c.what);
        CHECK(cut_bytes(c.tree) == c.bytes);
    }
}

TEST_CASE("the digest of a description tells types apart", "[datatype]") {
    const auto vector = [](int64_t count, int64_t block, int64_t stride, const TypeTree& inner) {
        return made(MPI_COMBINER_VECTOR, {count, block, stride}, {inner}, {}, 100);
    };
    const std::vector<TypeTree> trees = {
        an_int,
        a_double,
        vector(10, 1, 2, an_int),
        vector(10, 2, 1, an_int),
        vector(10, 1, 3, an_int),
        vector(10, 1, 2, a_double),
        vector(10, 1, 2, vector(10, 1, 2, an_int)),
        made(MPI_COMBINER_INDEXED, {2, 1, 1, 0, 5}, {an_int}, {}, 100),
        made(MPI_COMBINER_INDEXED, {2, 1, 1, 5, 0}, {an_int}, {}, 100),
        made(MPI_COMBINER_HINDEXED, {2, 1, 1}, {an_int}, {5, 0}, 100),
        made(MPI_COMBINER_VECTOR, {10, 1, 2}, {an_int}, {}, 104)};
    for (size_t i = 0; i < trees.size(); ++i)
        for (size_t k = 0; k < trees.size(); ++k) {
            CAPTURE(i, k);
            CHECK((digest_of(trees[i]) == digest_of(trees[k])) == (i == k));
        }
}
