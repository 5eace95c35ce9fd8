// SPDX-License-Identifier: BSD-3-Clause
#include "library/large_counts.hpp"

#include <catch2/catch.hpp>
#include <climits>
#include <vector>

#include "running_engine.hpp"

namespace {

using namespace vecmpi;

// What the int forms were asked for; a type has `size` bytes and `extent`.
struct Asked {
    std::vector<int> counts, rooms;
    std::vector<MPI_Count> from, to;  // bytes behind address 0
};
constinit MPI_Count size_of_type = 0, extent_of_type = 0, bytes_received = 0;
Asked asked;

MPI_Count address(const void* memory) { return reinterpret_cast<intptr_t>(memory); }
void* place(MPI_Count bytes) { return reinterpret_cast<void*>(static_cast<intptr_t>(bytes)); }

int moves(const void* from, void* to, int count, int room, int* position) {
    asked.counts.push_back(count);
    asked.rooms.push_back(room);
    asked.from.push_back(address(from));
    asked.to.push_back(address(to));
    *position += static_cast<int>(count * size_of_type);
    return MPI_SUCCESS;
}

// A library of MPI 3.1.
struct OldLibrary : FreshLibrary {
    OldLibrary() {
        asked = {};
        real = {};
        real.Type_size_x = [](MPI_Datatype, MPI_Count* size) {
            *size = size_of_type;
            return MPI_SUCCESS;
        };
        real.Type_get_extent_x = [](MPI_Datatype, MPI_Count* low, MPI_Count* extent) {
            *low = 0;
            *extent = extent_of_type;
            return MPI_SUCCESS;
        };
        real.Pack = [](const void* memory, int count, MPI_Datatype, void* packed, int room,
                       int* position,
                       MPI_Comm) { return moves(memory, packed, count, room, position); };
        real.Unpack = [](const void* packed, int room, int* position, void* memory, int count,
                         MPI_Datatype,
                         MPI_Comm) { return moves(packed, memory, count, room, position); };
        real.Type_get_envelope = [](MPI_Datatype, int* integers, int* addresses, int* types,
                                    int* combiner) {
            *integers = 3;
            *addresses = 2;
            *types = 1;
            *combiner = MPI_COMBINER_HINDEXED;
            return MPI_SUCCESS;
        };
        real.Type_create_hindexed = [](int count, const int lengths[], const MPI_Aint addresses[],
                                       MPI_Datatype, MPI_Datatype*) {
            for (int i = 0; i < count; ++i) {
                asked.counts.push_back(lengths[i]);
                asked.from.push_back(addresses[i]);
            }
            return MPI_SUCCESS;
        };
        real.Get_elements_x = [](const MPI_Status*, MPI_Datatype, MPI_Count* bytes) {
            *bytes = bytes_received;
            return MPI_SUCCESS;
        };
        library::complete_with_large_counts(real);
    }
    ~OldLibrary() { fake::reset(); }
};

}  // namespace

TEST_CASE("large counts: packing goes in pieces whose bytes fit an int", "[library]") {
    const OldLibrary library;
    size_of_type = 1 << 29;
    extent_of_type = MPI_Count{1} << 30;
    const MPI_Count bytes = 7 * size_of_type;
    MPI_Count position = 0;
    SECTION("packing") {
        CHECK(real.Pack_c(place(4096), 7, MPI_BYTE, place(8192), bytes, &position,
                          MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(asked.from ==
              std::vector<MPI_Count>{4096, 4096 + 3 * extent_of_type, 4096 + 6 * extent_of_type});
        CHECK(asked.to ==
              std::vector<MPI_Count>{8192, 8192 + 3 * size_of_type, 8192 + 6 * size_of_type});
    }
    SECTION("unpacking") {
        CHECK(real.Unpack_c(place(8192), bytes, &position, place(4096), 7, MPI_BYTE,
                            MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(asked.to ==
              std::vector<MPI_Count>{4096, 4096 + 3 * extent_of_type, 4096 + 6 * extent_of_type});
    }
    CHECK(asked.counts == std::vector<int>{3, 3, 1});
    CHECK(asked.rooms == std::vector<int>{INT_MAX, INT_MAX, 1 << 29});
    CHECK(position == bytes);
}

TEST_CASE("large counts: what an int cannot say is an error", "[library]") {
    const OldLibrary library;
    size_of_type = MPI_Count{INT_MAX} + 1;
    MPI_Count position = 0;
    CHECK(real.Pack_c(place(4096), 1, MPI_BYTE, place(8192), size_of_type, &position,
                      MPI_COMM_WORLD) == MPI_ERR_COUNT);
    const MPI_Count lengths[] = {3, size_of_type}, displacements[] = {-8, 16};
    MPI_Datatype made = MPI_DATATYPE_NULL;
    CHECK(real.Type_create_hindexed_c(2, lengths, displacements, MPI_BYTE, &made) == MPI_ERR_COUNT);
    CHECK(asked.counts.empty());
    CHECK(real.Type_create_hindexed_c(1, lengths, displacements, MPI_BYTE, &made) == MPI_SUCCESS);
    CHECK(asked.counts == std::vector<int>{3});
    CHECK(asked.from == std::vector<MPI_Count>{-8});
}

TEST_CASE("large counts: types have none, and a status counts elements", "[library]") {
    const OldLibrary library;
    MPI_Count integers = -1, addresses = -1, counts = -1, types = -1;
    int combiner = 0;
    CHECK(real.Type_get_envelope_c(MPI_BYTE, &integers, &addresses, &counts, &types, &combiner) ==
          MPI_SUCCESS);
    CHECK(std::vector<MPI_Count>{integers, addresses, counts, types} ==
          std::vector<MPI_Count>{3, 2, 0, 1});
    CHECK(combiner == MPI_COMBINER_HINDEXED);
    struct Row {
        MPI_Count size, bytes, expected;
    };
    for (const Row& row : {Row{1, MPI_Count{1} << 33, MPI_Count{1} << 33}, Row{8, 24, 3},
                           Row{8, 25, MPI_UNDEFINED}, Row{0, 0, 0}, Row{0, 1, MPI_UNDEFINED}}) {
        size_of_type = row.size;
        bytes_received = row.bytes;
        MPI_Count count = -1;
        CHECK(real.Get_count_c(MPI_STATUS_IGNORE, MPI_BYTE, &count) == MPI_SUCCESS);
        CHECK(count == row.expected);
    }
}

TEST_CASE("large counts: the library's own functions stay", "[library]") {
    const FreshLibrary library;
    library::RealFunctions functions{};
    functions.Pack_c = [](const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Count*,
                          MPI_Comm) { return MPI_ERR_OTHER; };
    const auto own = functions.Pack_c;
    library::complete_with_large_counts(functions);
    CHECK(functions.Pack_c == own);
    CHECK(functions.Unpack_c != nullptr);
    CHECK(functions.Reduce_local_c == nullptr);
}
