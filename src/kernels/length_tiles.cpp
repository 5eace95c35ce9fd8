// SPDX-License-Identifier: BSD-3-Clause
// Blocks of different lengths at offsets of a table, class by class of their lengths. Baseline
// code, for CPUs without moves under masks.
//
// Where lengths are random a branch on the length is mispredicted for most blocks, at some 15
// cycles. A class is moved by a fixed number of moves, of which the last begin earlier.
#include <array>
#include <cstring>

#include "blocks.hpp"

namespace vecmpi::kernels {
namespace {

// The longest block of each class; the last class has all others.
constexpr std::array<int64_t, LengthTile::classes - 1> most_bytes = {3, 8, 16, 32, 64, 128};

size_t class_of(int64_t bytes) noexcept {
    size_t found = 0;
    while (found < most_bytes.size() && bytes > most_bytes[found]) ++found;
    return bytes == 0 ? most_bytes.size() : found;
}

// Blocks of Half to 2 * Half bytes.
template <size_t Half>
struct TwoHalves {
    static void copy(char* to, const char* from, size_t bytes) noexcept {
        std::memcpy(to, from, Half);
        std::memcpy(to + bytes - Half, from + bytes - Half, Half);
    }
};

struct UpToThree {
    static void copy(char* to, const char* from, size_t bytes) noexcept {
        const char first = from[0], middle = from[bytes / 2], last = from[bytes - 1];
        to[0] = first;
        to[bytes / 2] = middle;
        to[bytes - 1] = last;
    }
};

struct AnyLength {
    static void copy(char* to, const char* from, size_t bytes) noexcept {
        copy_bytes(to, from, bytes);
    }
};

// `count` blocks of one class, named by `order`.
using CopyClass = void (*)(char* packed, char* memory, const int64_t* offsets,
                           const int64_t* starts, const uint8_t* order, size_t count) noexcept;

template <bool packing, class Length>
void copy_class(char* packed, char* memory, const int64_t* offsets, const int64_t* starts,
                const uint8_t* order, size_t count) noexcept {
    char* const stream = packed - starts[0];
    for (size_t i = 0; i < count; ++i) {
        const size_t block = order[i];
        char* const in_stream = stream + starts[block];
        char* const in_memory = memory + offsets[block];
        Length::copy(packing ? in_stream : in_memory, packing ? in_memory : in_stream,
                     static_cast<size_t>(starts[block + 1] - starts[block]));
    }
}

template <bool packing>
constexpr CopyClass by_class[LengthTile::classes] = {
    copy_class<packing, UpToThree>,     copy_class<packing, TwoHalves<4>>,
    copy_class<packing, TwoHalves<8>>,  copy_class<packing, TwoHalves<16>>,
    copy_class<packing, TwoHalves<32>>, copy_class<packing, TwoHalves<64>>,
    copy_class<packing, AnyLength>};

}  // namespace

LengthTile sorted_tile(const Block* blocks, size_t count) noexcept {
    LengthTile tile{};
    uint16_t end = 0;
    for (size_t length = 0; length < LengthTile::classes; ++length) {
        for (size_t i = 0; i < count; ++i)
            if (class_of(blocks[i].bytes) == length) tile.order[end++] = static_cast<uint8_t>(i);
        tile.ends[length] = end;
    }
    return tile;
}

void copy_tile(Direction direction, const LengthTile& tile, char* packed, char* memory,
               const int64_t* offsets, const int64_t* starts) noexcept {
    const CopyClass* const copy = direction == Direction::pack ? by_class<true> : by_class<false>;
    size_t first = 0;
    for (size_t length = 0; length < LengthTile::classes; ++length) {
        const size_t end = tile.ends[length];
        if (end != first)
            copy[length](packed, memory, offsets, starts, tile.order + first, end - first);
        first = end;
    }
}

}  // namespace vecmpi::kernels
