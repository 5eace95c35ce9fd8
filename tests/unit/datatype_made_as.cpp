// SPDX-License-Identifier: BSD-3-Clause
// How datatypes were made, as one short line.
#include <catch2/catch.hpp>

#include "base/api.hpp"
#include "datatype/decode.hpp"

using namespace vecmpi;
using namespace vecmpi::datatype;

namespace {

std::string name_of(const TypeTree& tree) {
    return tree.named == MPI_INT ? "MPI_INT" : tree.named == MPI_DOUBLE ? "MPI_DOUBLE" : "MPI_CHAR";
}

TypeTree named(MPI_Datatype type) {
    TypeTree tree;
    tree.named = type;
    return tree;
}
const TypeTree an_int = named(MPI_INT), a_double = named(MPI_DOUBLE), a_char = named(MPI_CHAR);

TypeTree made(int combiner, std::vector<int64_t> integers, std::vector<TypeTree> types,
              std::vector<int64_t> addresses = {}, std::vector<int64_t> counts = {}) {
    TypeTree tree;
    tree.combiner = combiner;
    tree.integers = std::move(integers);
    tree.addresses = std::move(addresses);
    tree.counts = std::move(counts);
    tree.types = std::move(types);
    return tree;
}

std::string text_of(const TypeTree& tree) { return made_as(tree, name_of); }

constexpr int64_t somewhere = 0x7ffd00001000;

}  // namespace

TEST_CASE("each combiner has a line", "[datatype][report]") {
    struct Case {
        const char* text;
        TypeTree tree;
    };
    const std::vector<TypeTree> ints{an_int}, three{an_int, a_double, an_int};
    for (const Case& c : std::vector<Case>{
             {"MPI_INT", an_int},
             {"dup of MPI_INT", made(MPI_COMBINER_DUP, {}, ints)},
             {"contiguous(7) of MPI_INT", made(MPI_COMBINER_CONTIGUOUS, {7}, ints)},
             {"vector(10, 1, 2) of MPI_INT", made(MPI_COMBINER_VECTOR, {10, 1, 2}, ints)},
             {"vector(10, 1, 2) of MPI_INT", made(MPI_COMBINER_VECTOR, {}, ints, {}, {10, 1, 2})},
             {"hvector(10, 1, 16) of MPI_INT", made(MPI_COMBINER_HVECTOR, {10, 1}, ints, {16})},
             {"indexed(2) of MPI_INT", made(MPI_COMBINER_INDEXED, {2, 1, 1, 0, 5}, ints)},
             {"indexed_block(3) of MPI_INT",
              made(MPI_COMBINER_INDEXED_BLOCK, {3, 1, 0, 5, 9}, ints)},
             {"hindexed(2) of MPI_INT", made(MPI_COMBINER_HINDEXED, {2, 1, 1}, ints, {0, 20})},
             {"hindexed(2, absolute) of MPI_INT",
              made(MPI_COMBINER_HINDEXED, {2, 1, 1}, ints, {somewhere, somewhere + 20})},
             {"hindexed(2) of MPI_INT",
              made(MPI_COMBINER_HINDEXED, {2, 1, 1}, ints, {0, somewhere})},
             {"hindexed(2, absolute) of MPI_INT",
              made(MPI_COMBINER_HINDEXED, {}, ints, {}, {2, 1, 1, somewhere, somewhere + 20})},
             {"hindexed_block(3) of MPI_INT",
              made(MPI_COMBINER_HINDEXED_BLOCK, {3, 1}, ints, {0, 5, 9})},
             {"struct(3) of {MPI_INT, MPI_DOUBLE}",
              made(MPI_COMBINER_STRUCT, {3, 1, 1, 1}, three, {0, 8, 16})},
             {"struct(3, absolute) of {MPI_INT, MPI_DOUBLE}",
              made(MPI_COMBINER_STRUCT, {3, 1, 1, 1}, three,
                   {somewhere, somewhere + 8, somewhere + 16})},
             {"subarray(8x1 in 64x32) of MPI_INT",
              made(MPI_COMBINER_SUBARRAY, {2, 64, 32, 8, 1, 0, 0, MPI_ORDER_C}, ints)},
             {"subarray(8x1 in 64x32) of MPI_INT",
              made(MPI_COMBINER_SUBARRAY, {2, MPI_ORDER_C}, ints, {}, {64, 32, 8, 1, 0, 0})},
             {"darray(100x50 over 4) of MPI_INT",
              made(MPI_COMBINER_DARRAY, {4, 0, 2, 100, 50, 1, 1, 2, 2, 2, 2, MPI_ORDER_C}, ints)},
             {"darray(100x50 over 4) of MPI_INT",
              made(MPI_COMBINER_DARRAY, {4, 0, 2, 1, 1, 2, 2, 2, 2, MPI_ORDER_C}, ints, {},
                   {100, 50})},
             {"resized(-4, 24) of MPI_INT", made(MPI_COMBINER_RESIZED, {}, ints, {-4, 24})},
             {"combiner 4711 of MPI_INT", made(4711, {}, ints)},
             {"combiner 4711 of ...", made(4711, {}, {})}}) {
        CAPTURE(c.text);
        CHECK(text_of(c.tree) == c.text);
    }
}

TEST_CASE("the deepest levels are cut", "[datatype][report]") {
    TypeTree tree = an_int;
    for (int i = 0; i < 60; ++i) tree = made(MPI_COMBINER_VECTOR, {1000, 10, 20}, {tree});
    CHECK(text_of(tree) == "vector(1000, 10, 20) of vector(1000, 10, 20) of ...");
    const int64_t large = INT64_MAX;
    const std::string one_level =
        text_of(made(MPI_COMBINER_VECTOR, {}, {an_int}, {}, {large, large, large}));
    CHECK(one_level.size() == longest_made_as);
    CHECK(one_level.substr(longest_made_as - 4) == "0...");
    std::vector<TypeTree> types;
    for (int64_t i = 0; i < 100; ++i) types.push_back(made(MPI_COMBINER_CONTIGUOUS, {i}, {a_char}));
    CHECK(text_of(made(MPI_COMBINER_STRUCT, std::vector<int64_t>(101, 1), types,
                       std::vector<int64_t>(100))) ==
          "struct(100) of {contiguous(0) of MPI_CHAR, ...}");
    CHECK(text_of(made(
              MPI_COMBINER_RESIZED, {},
              {made(MPI_COMBINER_STRUCT, {3, 1, 1, 1}, {an_int, a_double, a_char}, {0, 8, 16})},
              {0, 400})) == "resized(0, 400) of struct(3) of {MPI_INT, MPI_DOUBLE, ...}");
    CHECK(text_of(made(MPI_COMBINER_STRUCT, std::vector<int64_t>(4, 1), {an_int, a_double, a_char},
                       std::vector<int64_t>(3))) == "struct(3) of {MPI_INT, MPI_DOUBLE, MPI_CHAR}");
}

TEST_CASE("what was not read has a line as far as it is known", "[datatype][report]") {
    TypeTree table = made(MPI_COMBINER_INDEXED_BLOCK, {}, {});
    table.unread = 514;
    CHECK(text_of(table) == "indexed_block(512) of ...");
    const TypeTree record = made(MPI_COMBINER_STRUCT, std::vector<int64_t>(7, 1), {an_int, table},
                                 std::vector<int64_t>(6));
    CHECK(text_of(record) == "struct(6) of {MPI_INT, indexed_block(512) of ..., ...}");
    CHECK(text_of(made(MPI_COMBINER_STRUCT, {2, 1, 1}, {table, table}, {0, 1})) ==
          "struct(2) of indexed_block(512) of ...");
}
