// SPDX-License-Identifier: BSD-3-Clause
// Where the bytes of a datatype lie, in the order in which MPI sends them: a tree in one canonical
// form. Pure. Inside src/datatype and its tests only.
//
// The functions below make layouts and are the rewrite rules at once: they take canonical layouts
// and give a canonical one. Empty parts vanish; neighbours become one block; a single copy is what
// it copies; copies that continue each other are one row; equal distances are a stride; sequences
// within sequences are one; small copies at many places are a table of their blocks.
#pragma once

#include <vector>

#include "kernels/api.hpp"

namespace vecmpi::datatype {

struct Layout {
    enum class Kind : uint8_t {
        empty,
        dense,    // `bytes` bytes
        strided,  // `count` copies of parts[0], `stride` bytes apart
        places,   // copies of parts[0] at `offsets`
        blocks,   // dense blocks of different lengths
        sequence  // parts, one after the other
    };
    Kind kind = Kind::empty;
    int64_t offset = 0;  // from where whatever holds it stands; offsets within count from here
    int64_t bytes = 0;   // of all
    int64_t count = 0;
    int64_t stride = 0;
    std::vector<int64_t> offsets;        // the first is 0
    std::vector<kernels::Block> blocks;  // the first is at 0
    std::vector<Layout> parts;           // of strided and places: one, at offset 0

    bool operator==(const Layout& other) const;
};

Layout dense(int64_t bytes);
Layout moved(Layout layout, int64_t by);
Layout repeated(Layout layout, int64_t count, int64_t stride);
Layout at_places(Layout layout, const std::vector<int64_t>& offsets);
Layout of_blocks(const std::vector<kernels::Block>& blocks);
Layout joined(std::vector<Layout> parts);

// First byte and the one after the last, as low and high.
struct Bounds {
    int64_t low = 0, high = 0;
};
Bounds bounds_of(const Layout& layout);

// The blocks of a layout that has at most `most` of them; empty where it has more.
std::vector<kernels::Block> blocks_of(const Layout& layout, size_t most);

// How many copies at a distance of `extent` surely share no byte: 0 where one copy may overlap
// itself, INT64_MAX where any number does.
int64_t disjoint_copies(const Layout& layout, int64_t extent);

// The memory that it takes.
size_t layout_bytes(const Layout& layout) noexcept;

}  // namespace vecmpi::datatype
