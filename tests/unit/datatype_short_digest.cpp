// SPDX-License-Identifier: BSD-3-Clause
// Digests of short descriptions, over a library that has any description it is given.
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "datatype/decode.hpp"
#include "library/api.hpp"

using namespace vecmpi;
using namespace vecmpi::datatype;

namespace {

constexpr unsigned first_handle = 0x8c000000u;  // of derived types, as in MPICH
std::map<MPI_Datatype, TypeTree> types;
int handles_out = 0;

MPI_Datatype next_handle() { return static_cast<MPI_Datatype>(first_handle + types.size()); }
const TypeTree& tree_of(MPI_Datatype type) { return types.at(type); }

bool is_to_be_freed(const TypeTree& tree) {
    return tree.combiner != MPI_COMBINER_NAMED && tree.combiner != MPI_COMBINER_F90_REAL;
}

int fake_size(MPI_Datatype type, MPI_Count* size) {
    *size = tree_of(type).size;
    return MPI_SUCCESS;
}
int fake_extent(MPI_Datatype type, MPI_Count* low, MPI_Count* extent) {
    *low = 0;
    *extent = tree_of(type).extent;
    return MPI_SUCCESS;
}
int fake_envelope(MPI_Datatype type, MPI_Count* integers, MPI_Count* addresses, MPI_Count* counts,
                  MPI_Count* inner, int* combiner) {
    const TypeTree& tree = tree_of(type);
    *integers = static_cast<MPI_Count>(tree.integers.size());
    *addresses = static_cast<MPI_Count>(tree.addresses.size());
    *counts = static_cast<MPI_Count>(tree.counts.size());
    *inner = static_cast<MPI_Count>(tree.types.size());
    *combiner = tree.combiner;
    return MPI_SUCCESS;
}

MPI_Datatype hold(const TypeTree& tree) {
    if (tree.combiner == MPI_COMBINER_NAMED) {
        types[tree.named] = tree;
        return tree.named;
    }
    const MPI_Datatype handle = next_handle();
    types[handle] = tree;
    return handle;
}

// Room for so many of each, as the standard has it: more would be written behind an array.
int fake_contents(MPI_Datatype type, MPI_Count most_integers, MPI_Count most_addresses,
                  MPI_Count most_counts, MPI_Count most_types, int integers[], MPI_Aint addresses[],
                  MPI_Count counts[], MPI_Datatype inner[]) {
    const TypeTree tree = tree_of(type);
    REQUIRE(most_integers == static_cast<MPI_Count>(tree.integers.size()));
    REQUIRE(most_addresses == static_cast<MPI_Count>(tree.addresses.size()));
    REQUIRE(most_counts == static_cast<MPI_Count>(tree.counts.size()));
    REQUIRE(most_types == static_cast<MPI_Count>(tree.types.size()));
    std::copy(tree.integers.begin(), tree.integers.end(), integers);
    std::copy(tree.addresses.begin(), tree.addresses.end(), addresses);
    std::copy(tree.counts.begin(), tree.counts.end(), counts);
    for (const TypeTree& part : tree.types) {
        *inner = hold(part);
        if (is_to_be_freed(part)) ++handles_out;
        ++inner;
    }
    return MPI_SUCCESS;
}
int fake_free(MPI_Datatype* type) {
    CHECK(is_to_be_freed(tree_of(*type)));
    --handles_out;
    *type = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

struct AnyLibrary {
    AnyLibrary() {
        types.clear();
        handles_out = 0;
        real.Type_size_x = fake_size;
        real.Type_get_extent_x = fake_extent;
        real.Type_get_envelope_c = fake_envelope;
        real.Type_get_contents_c = fake_contents;
        real.Type_free = fake_free;
    }
    ~AnyLibrary() { real = before; }
    AnyLibrary(const AnyLibrary&) = delete;
    AnyLibrary& operator=(const AnyLibrary&) = delete;
    const decltype(real) before = real;
};

TypeTree named(MPI_Datatype type, int64_t size) {
    TypeTree tree;
    tree.named = type;
    tree.size = tree.extent = size;
    return tree;
}

class Trees {
  public:
    explicit Trees(uint32_t seed) : random_(seed) {}
    int64_t below(int64_t end) {
        return std::uniform_int_distribution<int64_t>(0, end - 1)(random_);
    }
    std::vector<int64_t> list(int64_t longest) {
        std::vector<int64_t> values(static_cast<size_t>(below(longest + 1)));
        for (int64_t& value : values) value = below(1000) - 500;
        return values;
    }
    TypeTree tree(int deepest) {
        if (deepest == 0) return below(2) == 0 ? named(MPI_INT, 4) : named(MPI_DOUBLE, 8);
        TypeTree made;
        made.combiner = below(2) == 0 ? MPI_COMBINER_STRUCT : MPI_COMBINER_VECTOR;
        made.size = below(1 << 20);
        made.extent = below(1 << 20) - (1 << 10);
        made.integers = list(6);
        made.addresses = list(4);
        made.counts = list(4);
        for (int64_t i = below(4); i >= 0; --i)
            made.types.push_back(tree(static_cast<int>(below(deepest))));
        return made;
    }

  private:
    std::mt19937 random_;
};

}  // namespace

TEST_CASE("the digest of a short description is that of its tree", "[datatype]") {
    const uint32_t seed = std::random_device()();
    CAPTURE(seed);
    Trees trees(seed);
    int short_ones = 0;
    for (int i = 0; i < 200; ++i) {
        const AnyLibrary library;
        const TypeTree tree = trees.tree(static_cast<int>(trees.below(4)));
        const std::optional<TypeDigest> digest = digest_of_short(hold(tree));
        CHECK(handles_out == 0);
        if (!digest) continue;
        ++short_ones;
        CHECK(*digest == digest_of(tree));
    }
    CHECK(short_ones > 100);
}

TEST_CASE("what is not short is told by its tree alone", "[datatype]") {
    const AnyLibrary library;
    const TypeTree an_int = named(MPI_INT, 4);
    TypeTree type;
    type.combiner = MPI_COMBINER_INDEXED;
    type.types = {an_int};
    type.integers.assign(32, 1);
    CHECK(digest_of_short(hold(type)) == digest_of(type));

    SECTION("a long list") { type.integers.push_back(1); }
    SECTION("many types") { type.types.assign(9, an_int); }
    SECTION("many words in several types") {
        const TypeTree part = type;
        type.types.assign(8, part);
    }
    SECTION("types in types") {
        for (int i = 0; i < 4; ++i) {
            const TypeTree part = type;
            type.types = {part};
            type.integers = {1};
        }
    }
    SECTION("a value that may have padding") {
        TypeTree value;
        value.combiner = MPI_COMBINER_F90_REAL;
        value.size = value.extent = 16;
        type.types = {value};
    }
    CHECK(digest_of_short(hold(type)) == std::nullopt);
    CHECK(handles_out == 0);
}
