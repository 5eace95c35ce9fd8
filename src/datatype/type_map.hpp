// SPDX-License-Identifier: BSD-3-Clause
// Where the bytes of a datatype lie, in the order in which MPI sends them (MPI 4.0, 5.1): a tree in
// canonical form. Pure. Inside src/datatype and its tests only.
//
// The functions that make type maps are the rewrite rules too: of canonical type maps they make a
// canonical one.
//   - Empty parts vanish.                  - Equal distances become a stride.
//   - Neighbours become one block.         - Sequences within sequences become one.
//   - A single copy is what it copies.     - Small copies at many places become a table of their
//   - Copies that go on are one row.         blocks.
#pragma once

#include <vector>

#include "kernels/api.hpp"

namespace vecmpi::datatype {

struct TypeMap {
    enum class Kind : uint8_t {
        empty,
        dense,    // `bytes` bytes
        strided,  // `count` copies of parts[0], `stride` bytes apart
        places,   // copies of parts[0] at `offsets`
        blocks,   // dense blocks of different lengths
        sequence  // parts, one after the other
    };
    Kind kind = Kind::empty;
    int64_t offset = 0;  // of its origin from the holder's; all within counts from this origin
    int64_t bytes = 0;   // in the stream
    int64_t count = 0;
    int64_t stride = 0;
    std::vector<int64_t> offsets;        // the first is 0
    std::vector<kernels::Block> blocks;  // the first is at 0
    std::vector<TypeMap> parts;          // of strided and places: one, at offset 0

    bool operator==(const TypeMap& other) const;
};

TypeMap dense(int64_t bytes);
TypeMap moved(TypeMap map, int64_t by);
TypeMap repeated(TypeMap map, int64_t count, int64_t stride);
TypeMap at_places(TypeMap map, const std::vector<int64_t>& offsets);
TypeMap of_blocks(const std::vector<kernels::Block>& blocks);
TypeMap joined(std::vector<TypeMap> parts);

struct Bounds {
    int64_t low = 0, high = 0;  // the first byte, and the one after the last
};
Bounds bounds_of(const TypeMap& map);

// Empty where there are more than `most`.
std::vector<kernels::Block> blocks_of(const TypeMap& map, size_t most);

// How many copies at a distance of `extent` surely share no byte: 0 where one copy may overlap
// itself, INT64_MAX where any number does.
int64_t disjoint_copies(const TypeMap& map, int64_t extent);

size_t memory_bytes(const TypeMap& map) noexcept;

// Dense blocks of one copy; 1 at least.
int64_t number_of_blocks(const TypeMap& map) noexcept;

}  // namespace vecmpi::datatype
