// SPDX-License-Identifier: BSD-3-Clause
// Buffers of MPI-IO, over a library whose only derived types are vectors of ints.
#include <numeric>

#include "datatype/pack_trial.hpp"
#include "vector_types.hpp"

using namespace vecmpi;
using namespace vecmpi::datatype;
using namespace vector_types;

namespace {

constexpr auto pack = kernels::Direction::pack, unpack = kernels::Direction::unpack;

TypeTree named(MPI_Datatype type, int64_t size, int64_t extent) {
    TypeTree tree;
    tree.named = type;
    tree.size = size;
    tree.extent = extent;
    return tree;
}
TypeTree made(int combiner, std::vector<TypeTree> types, std::vector<int64_t> addresses = {}) {
    TypeTree tree;
    tree.combiner = combiner;
    tree.types = std::move(types);
    tree.addresses = std::move(addresses);
    return tree;
}

constexpr int values = 4000;
constexpr auto packed_type = static_cast<MPI_Datatype>(0x8c0000feu);
MPI_Aint shift = 0;

int fake_hindexed(int count, const int lengths[], const MPI_Aint places[], MPI_Datatype of,
                  MPI_Datatype* made) {
    CHECK(count == 1);
    CHECK(lengths[0] == values);
    CHECK(of == MPI_INT);
    shift = places[0];
    *made = packed_type;
    return MPI_SUCCESS;
}
int fake_commit(MPI_Datatype*) { return MPI_SUCCESS; }

// A program that moves one element of a vector of ints again and again.
struct Program {
    Program() : library({{1, {values, 2}}}), memory(size_t{2} * values) {
        real.Type_create_hindexed = fake_hindexed;
        real.Type_commit = fake_commit;
        fill();
    }
    void fill() { std::iota(memory.begin(), memory.end(), 0); }
    FileData data(kernels::Direction direction, MPI_Count count = 1) {
        return {direction, FileAccess::independent, memory.data(), count, handle(1)};
    }
    // True: it went packed. The library is slower than a plan under a sanitizer.
    bool move(kernels::Direction direction, MPI_Count moved = values * int_bytes) {
        FileData moving = data(direction);
        if (!moving.is_chosen() || !moving.begin()) {
            const uint64_t end_ns = monotonic_ns() + 5'000'000;
            while (monotonic_ns() < end_ns) {
            }
            moving.note_moved_by_library();
            return false;
        }
        CHECK(moving.packed_type() == packed_type);
        auto* const packed = reinterpret_cast<int*>(static_cast<char*>(moving.packed()) + shift);
        if (direction == pack) {
            CHECK(packed[3] == memory[6]);
            CHECK(packed[values - 1] == memory[2 * (values - 1)]);
        } else {
            std::fill_n(packed, values, -1);
        }
        moving.end(moved);
        return true;
    }
    void move_often(kernels::Direction direction) {
        for (int i = 0; i < 60; ++i) move(direction);
    }

    PackingLibrary library;
    std::vector<int> memory;
};

}  // namespace

TEST_CASE("ROMIO takes types of one level for what they are", "[datatype]") {
    const TypeTree number = named(MPI_INT, 4, 4), pair = named(MPI_DOUBLE_INT, 12, 16);
    const TypeTree vector = made(MPI_COMBINER_VECTOR, {number});
    CHECK(has_one_level(vector));
    CHECK(has_one_level(made(MPI_COMBINER_DUP, {vector})));
    CHECK(has_one_level(made(MPI_COMBINER_RESIZED, {vector}, {0, 64})));
    CHECK(has_one_level(made(MPI_COMBINER_RESIZED, {number}, {0, 64})));
    CHECK(has_one_level(made(MPI_COMBINER_STRUCT, {number, named(MPI_DOUBLE, 8, 8)})));
    CHECK(has_one_level(made(MPI_COMBINER_INDEXED, {made(MPI_COMBINER_CONTIGUOUS, {number})})));
    CHECK_FALSE(has_one_level(number));
    CHECK_FALSE(has_one_level(made(MPI_COMBINER_RESIZED, {vector}, {-8, 64})));
    CHECK_FALSE(has_one_level(made(MPI_COMBINER_RESIZED, {vector}, {0, -64})));
    CHECK_FALSE(has_one_level(made(MPI_COMBINER_VECTOR, {vector})));
    CHECK_FALSE(has_one_level(made(MPI_COMBINER_VECTOR, {pair})));
    CHECK_FALSE(has_one_level(made(MPI_COMBINER_DARRAY, {number})));
    TypeTree large = vector;
    large.counts = {1};
    CHECK_FALSE(has_one_level(large));
}

TEST_CASE("a file's time of a plan counts an eighth more", "[datatype]") {
    CHECK(counted_in_file(Packer::library, 800) == 800);
    CHECK(counted_in_file(Packer::plan, 800) == 900);
}

TEST_CASE("a type that the library writes slowly goes packed", "[datatype]") {
    Program program;
    CHECK_FALSE(program.move(pack));
    program.move_often(pack);
    CHECK(program.move(pack));
    CHECK(program.data(pack).is_chosen());
}

TEST_CASE("what was read is unpacked, and no more", "[datatype]") {
    Program program;
    program.move_often(unpack);
    program.fill();
    REQUIRE(program.move(unpack, 3 * int_bytes));
    CHECK(program.memory[0] == -1);
    CHECK(program.memory[1] == 1);
    CHECK(program.memory[4] == -1);
    CHECK(program.memory[6] == 6);
    REQUIRE(program.move(unpack));
    CHECK(program.memory[2 * (values - 1)] == -1);
    CHECK(program.memory[2 * (values - 1) + 1] == 2 * (values - 1) + 1);
}

TEST_CASE("what the library may refuse goes to it", "[datatype]") {
    Program program;
    program.move_often(pack);
    CHECK(program.data(pack).is_chosen());
    CHECK_FALSE(program.data(pack, 0).is_chosen());
    CHECK_FALSE(program.data(pack, -1).is_chosen());
    CHECK_FALSE(FileData(pack, FileAccess::independent, nullptr, 1, handle(1)).is_chosen());
    CHECK_FALSE(FileData(pack, FileAccess::independent, MPI_IN_PLACE, 1, handle(1)).is_chosen());
}
