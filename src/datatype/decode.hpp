// SPDX-License-Identifier: BSD-3-Clause
// What the library says of a datatype, and the type map that follows from it. Inside src/datatype
// and its tests only.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

#include "type_map.hpp"

namespace vecmpi::datatype {

// A datatype as MPI_Type_get_envelope and MPI_Type_get_contents describe it (MPI 4.0, 5.1.13).
struct TypeTree {
    int combiner = MPI_COMBINER_NAMED;
    MPI_Datatype named = MPI_DATATYPE_NULL;  // the handle of a predefined type
    int64_t size = 0;
    int64_t extent = 0;
    std::vector<int64_t> integers;
    std::vector<int64_t> addresses;
    std::vector<int64_t> counts;  // of a type made by a large-count function
    std::vector<TypeTree> types;  // that it is made of
    size_t unread = 0;            // numbers of a description that had no room
};

enum class Described : uint8_t { fully, too_large, unknown };
// Entries of the longest description that is read: 8 MiB. An indexed type has two entries a block,
// and a plan of 4 MiB holds at most half as many blocks.
constexpr size_t most_described = size_t{1} << 20;
// Memory of a type map at most. A short description may name a large type many times.
constexpr size_t most_map_bytes = size_t{8} << 20;
// Asks the library. `room`: entries that the description may have.
Described describe(MPI_Datatype type, TypeTree& tree, size_t room = most_described);

// Pure. At each multiple of so many bytes of the stream a predefined value ends; the size of an
// element is such a multiple. 0: more than 512. A float and an int are one value of 8 bytes to the
// library.
int64_t cut_bytes(const TypeTree& tree) noexcept;
// Pure. The predefined type of all the type's values, if it is one without gaps of at most so many
// bytes. Else MPI_DATATYPE_NULL.
MPI_Datatype only_value_type(const TypeTree& tree, int64_t most_bytes) noexcept;

// Pure. Is it one constructor over predefined types without gaps, duplicated or with another extent
// at most? ROMIO of MPICH 4.0.2 takes deeper types for others than they are, and moves by it what
// has another lower bound (flatten.c). What it writes so, it must go on to read.
bool has_one_level(const TypeTree& tree) noexcept;

// Bytes of the stream that are no part of a value: of a long double's 16 bytes on x86-64 the
// last 6. The library leaves them alone or copies them, and so do we: two streams are equal without
// them.
struct Padding {
    int64_t period = 1;                  // bytes after which it repeats itself
    std::vector<kernels::Block> blocks;  // within a period; none: there is no padding
    bool operator==(const Padding&) const = default;
};
constexpr size_t most_padding_blocks = 1024;
// Pure. Nothing where that would be more than most_padding_blocks.
std::optional<Padding> padding_of(const TypeTree& tree);
// Writes zeros over the padding of bytes [first, first + bytes) of the stream; `part` begins with
// byte `first`.
void blank_padding(const Padding& padding, char* part, int64_t first, int64_t bytes) noexcept;

// 128 bits, so that no two types of a program have one.
struct TypeDigest {
    uint64_t low = 0, high = 0;
    bool operator==(const TypeDigest&) const = default;
};
// Pure. Types with one type map may have different digests, if they were made differently.
TypeDigest digest_of(const TypeTree& tree) noexcept;
// Asks the library. The same of a short description, which takes no memory of the heap: most types
// are made by one constructor with a few arguments. Nothing where describe() has to tell.
std::optional<TypeDigest> digest_of_short(MPI_Datatype type) noexcept;

// Pure. How it was made, in at most longest_made_as letters: "vector(1000, 1, 2) of MPI_DOUBLE". A
// type that was described in part has a text too. name_of: of a predefined type.
using NameOfType = std::string (*)(const TypeTree& named);
std::string made_as(const TypeTree& tree, NameOfType name_of);

// Pure. Nothing where a combiner is unknown, or the type map would take more than most_map_bytes;
// the last is `how` too_large.
std::optional<TypeMap> decode(const TypeTree& tree, Described* how = nullptr);

}  // namespace vecmpi::datatype
