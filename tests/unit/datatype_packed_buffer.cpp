// SPDX-License-Identifier: BSD-3-Clause
// Where a collective of ours finds the packed bytes of a buffer, over a library whose only derived
// types are vectors of ints.
#include <numeric>

#include "vector_types.hpp"

using namespace vecmpi;
using namespace vecmpi::datatype;
using namespace vector_types;

namespace {

std::vector<int> counted(size_t elements) {
    std::vector<int> values(elements);
    std::iota(values.begin(), values.end(), 0);
    return values;
}

}  // namespace

TEST_CASE("a buffer of a predefined type holds its packed bytes itself", "[datatype]") {
    const PackingLibrary library({{1, {4, 2}}});
    std::vector<int> memory = counted(4), other(4);
    PackedBuffer buffer(memory.data(), 4, MPI_INT, MPI_COMM_WORLD);
    CHECK(buffer.is_dense());
    CHECK(buffer.bytes() == 16);
    CHECK(buffer.place() == reinterpret_cast<unsigned char*>(memory.data()));
    CHECK(buffer.pack() == MPI_SUCCESS);
    CHECK(buffer.pack_to(other.data()) == MPI_SUCCESS);
    CHECK(other == counted(4));
    other[3] = 9;
    CHECK(buffer.unpack_from(other.data()) == MPI_SUCCESS);
    CHECK(memory == other);
}

TEST_CASE("a buffer of a derived type is packed into memory of its own", "[datatype]") {
    const PackingLibrary library({{1, {4, 2}}});
    std::vector<int> memory = counted(8);
    PackedBuffer first(memory.data(), 1, handle(1), MPI_COMM_WORLD);
    PackedBuffer buffer = std::move(first);
    CHECK_FALSE(buffer.is_dense());
    REQUIRE(buffer.bytes() == 16);
    unsigned char* const place = buffer.place();
    CHECK(place == buffer.place());
    CHECK(buffer.pack() == MPI_SUCCESS);
    int* const packed = reinterpret_cast<int*>(place);
    CHECK(std::vector<int>(packed, packed + 4) == std::vector<int>{0, 2, 4, 6});
    packed[1] = 9;
    CHECK(buffer.unpack() == MPI_SUCCESS);
    CHECK(memory == std::vector<int>{0, 1, 9, 3, 4, 5, 6, 7});
}

TEST_CASE("a large buffer of a derived type without gaps holds its packed bytes itself",
          "[datatype]") {
    constexpr int many = least_described_bytes / sizeof(int);
    const PackingLibrary library({{1, {many, 1}}, {2, {4, 1}}, {3, {many, 1, 5 * many}}});
    std::vector<int> memory = counted(6 * many);
    const auto is_dense = [&](MPI_Count count, int type) {
        PackedBuffer buffer(memory.data(), count, handle(type), MPI_COMM_WORLD);
        if (buffer.is_dense())
            CHECK(buffer.place() == reinterpret_cast<unsigned char*>(memory.data()));
        return buffer.is_dense();
    };
    CHECK(is_dense(1, 1));
    CHECK(is_dense(2, 1));
    CHECK_FALSE(is_dense(many / 4 - 1, 2));  // too short to ask
    CHECK(is_dense(many / 4, 2));
    CHECK(is_dense(1, 2));  // known since
    CHECK(is_dense(1, 3));
    CHECK_FALSE(is_dense(2, 3));  // a gap between elements
    const int asked = envelopes;
    CHECK(is_dense(1, 1));
    CHECK(envelopes == asked);
    forget_plan(handle(1));
    types[handle(1)] = {many, 2};  // the same handle, of another type
    CHECK_FALSE(is_dense(1, 1));
    for (int call = 1; call < 4; ++call) CHECK_FALSE(is_dense(1, 2));  // too short to ask anew
    CHECK(is_dense(1, 2));
}

TEST_CASE("wrong arguments are no bytes", "[datatype]") {
    const PackingLibrary library({{1, {4, 2}}});
    int memory = 0;
    const auto bytes = [&](MPI_Count count, MPI_Datatype type) {
        return PackedBuffer(&memory, count, type, MPI_COMM_WORLD).bytes();
    };
    CHECK(bytes(1, handle(1)) == 16);
    CHECK(bytes(-1, handle(1)) == 0);
    CHECK(bytes(1, MPI_DATATYPE_NULL) == 0);
    CHECK(bytes(PTRDIFF_MAX / 8, handle(1)) == 0);
}
