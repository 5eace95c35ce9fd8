// SPDX-License-Identifier: BSD-3-Clause
// What the library says of a datatype, and the layout that follows from it. Inside src/datatype and
// its tests only.
#pragma once

#include <mpi.h>

#include <optional>
#include <vector>

#include "layout.hpp"

namespace vecmpi::datatype {

// A datatype as MPI_Type_get_envelope and MPI_Type_get_contents describe it (MPI 4.0, 5.1.13), with
// the types that it is made of.
struct TypeTree {
    int combiner = MPI_COMBINER_NAMED;
    MPI_Datatype named = MPI_DATATYPE_NULL;  // a predefined one
    int64_t size = 0;
    int64_t extent = 0;
    std::vector<int64_t> integers;
    std::vector<int64_t> addresses;
    std::vector<int64_t> counts;  // of a type made by a large-count function
    std::vector<TypeTree> types;
};

enum class Described : uint8_t { fully, too_large, unknown };
// The longest description that is read: 8 MiB. An indexed type has two numbers a block, and a plan
// of 4 MiB at most half as many blocks.
constexpr size_t most_described = size_t{1} << 20;
// What a layout may take while it is decoded: a description that names a type several times says
// more than it is long.
constexpr size_t most_layout_bytes = size_t{8} << 20;
// Asks the library. `room`: entries that the description may have.
Described describe(MPI_Datatype type, TypeTree& tree, size_t room = most_described);

// Pure. The size of each predefined value in the type; 0 where it has none, or of several sizes.
int64_t value_bytes(const TypeTree& tree) noexcept;

// Pure. Types that lie alike but were made otherwise may differ in it.
uint64_t digest_of(const TypeTree& tree) noexcept;

// Pure. Nothing where a combiner is unknown or a type has long doubles within it, nor, with `how`
// too large, where the layout would take more than most_layout_bytes.
std::optional<Layout> decode(const TypeTree& tree, Described* how = nullptr);

}  // namespace vecmpi::datatype
