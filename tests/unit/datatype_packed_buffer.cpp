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
    real.Pack_c = nullptr;
    CHECK(bytes(1, MPI_INT) == 0);
}
