// SPDX-License-Identifier: BSD-3-Clause
// What the copiers of scattered blocks are made of. Inside src/kernels only.
//
// Glossary
//   permutation   tables that move a group of records between registers: `lines` registers of
//                 memory and one of the stream
//   window        the memory that a group's lines cover; it may reach past the group's last block
//   shuffle       the same with registers of 16 bytes, for packing alone
#pragma once

#include "kernels/api.hpp"

namespace vecmpi::kernels {

// `count` blocks of `bytes` bytes; block i goes from from + i * from_stride to to + i * to_stride.
// One function for both directions.
struct StridedCopy {
    char* to;
    ptrdiff_t to_stride;
    const char* from;
    ptrdiff_t from_stride;
    size_t count, bytes;
};
using CopyStrided = void (*)(const StridedCopy& copy) noexcept;

// For blocks of that length: in baseline code, and what is faster with wider registers (null:
// nothing is).
CopyStrided strided_copy_baseline(size_t bytes) noexcept;
CopyStrided strided_copy_avx2(size_t bytes) noexcept;
CopyStrided strided_copy_avx512(size_t bytes) noexcept;
CopyStrided strided_copy(size_t bytes, Isa isa) noexcept;

// ---- one long block ----------------------------------------------------------------------------

// Whether `rep movsb`, as memcpy takes it, crawls on AMD's CPUs from Zen 3 on: the target lies 1 to
// 31 bytes behind the source, but for whole pages (bug 30994 of glibc, mended in 2.40). Pure.
bool are_unlucky(const void* to, const void* from) noexcept;
// The last bytes first, so that no load waits for a store to the same place of a page.
void copy_from_end(void* to, const void* from, size_t bytes) noexcept;

// ---- permutations ------------------------------------------------------------------------------

constexpr size_t register_bytes = 64;
constexpr size_t most_lines = 8;

// Byte i of the result is byte index[i] of the source where bit i of the mask is set.
struct alignas(register_bytes) ByteChoice {
    uint8_t index[register_bytes];
    uint64_t mask;
};

struct Permutation {
    ByteChoice pack[most_lines];  // by line of the window, each into the one register of the stream
    ByteChoice unpack[most_lines];  // the register of the stream into each line
    size_t lines;
    size_t records;         // that a group has
    size_t moves;           // that the blocks of a group take one by one
    size_t packed_offset;   // of the group's first byte, from that of its first record
    size_t packed_bytes;    // of a group; at most a register
    int64_t window_offset;  // of the window, from where the group's first record stands
};

// The window of a group.
struct Window {
    int64_t offset;  // from where the group's first record stands
    int64_t bytes;
    size_t records;  // of a group
};
inline Window window_of(const Permutation& tables) noexcept {
    return {tables.window_offset, static_cast<int64_t>(tables.lines * register_bytes),
            tables.records};
}

// Groups [0, groups) of `tables`. Every window lies within memory that may be read.
using CopyGroups = void (*)(const Permutation& tables, char* packed, size_t packed_step,
                            char* memory, int64_t memory_step, size_t groups) noexcept;
CopyGroups copy_groups_avx512(Direction direction, size_t lines) noexcept;
bool bytes_can_be_permuted(Isa isa) noexcept;

// The first `bytes` bytes of one group's stream; reads and writes nothing but the blocks.
void copy_group_part_avx512(Direction direction, const Permutation& tables, char* packed,
                            char* memory, size_t bytes) noexcept;

// ---- shuffles ----------------------------------------------------------------------------------
// Every vector unit permutes 16 bytes. Such a register is stored whole, since there are no masks by
// byte. So shuffles pack only: the next group overwrites what is stored behind a group.

constexpr size_t short_register_bytes = 16;

struct Shuffle {
    // By line of the window: byte i of the stream is byte index[i] of the line that has it.
    alignas(short_register_bytes) uint8_t index[most_lines][short_register_bytes];
    static constexpr uint8_t elsewhere = 0x80;  // in the index: another line has it
    size_t lines;
    size_t records;         // that a group has
    size_t packed_offset;   // of the register, from the group's first byte in the stream
    int64_t window_offset;  // of the window, from where the group's first record stands
};
inline Window window_of(const Shuffle& tables) noexcept {
    return {tables.window_offset, static_cast<int64_t>(tables.lines * short_register_bytes),
            tables.records};
}

// Groups [0, groups). Every window and every register of the stream lies within the buffers.
using ShuffleGroups = void (*)(const Shuffle& tables, char* packed, size_t packed_step,
                               const char* memory, int64_t memory_step, size_t groups) noexcept;
// Null: none in this instruction set.
ShuffleGroups shuffle_groups(Isa isa, size_t lines) noexcept;

// ---- byte order --------------------------------------------------------------------------------

// As reverse_bytes(), in baseline code.
void reverse_plainly(void* to, const void* from, size_t bytes, size_t width) noexcept;

constexpr size_t number_of_reversals = 4;  // of values of 2, 4, 8 and 16 bytes
using ReverseBytes = void (*)(void* to, const void* from, size_t bytes) noexcept;

// ---- tables and grids --------------------------------------------------------------------------

// `count` blocks of 4 or 8 bytes at offsets[i].
void gather_table_avx512(Direction direction, char* packed, char* memory, const int64_t* offsets,
                         size_t bytes, size_t count) noexcept;
bool can_gather(size_t bytes, Isa isa) noexcept;

// `count` blocks of any lengths, by masked moves: no branch on the length.
void copy_short_blocks_avx512(Direction direction, char* packed, char* memory,
                              const int64_t* offsets, const int64_t* starts, size_t count) noexcept;

// The tile of `count` blocks, at most LengthTile::most_blocks.
LengthTile sorted_tile(const Block* blocks, size_t count) noexcept;
// Its blocks: block i lies at offsets[i], and in the stream at starts[i] - starts[0].
void copy_tile(Direction direction, const LengthTile& tile, char* packed, char* memory,
               const int64_t* offsets, const int64_t* starts) noexcept;

// `count` squares of elements, each transposed in registers. Row r of a square is a register at
// from + r * from_stride; it becomes column r. The next square is a step further.
struct Tiles {
    char* to;
    ptrdiff_t to_stride, to_step;
    const char* from;
    ptrdiff_t from_stride, from_step;
    size_t count;
};
using TransposeTiles = void (*)(const Tiles& tiles) noexcept;
struct Transposer {
    TransposeTiles transpose = nullptr;  // null: none for such elements
    size_t row_bytes = 0;                // of a square
};
Transposer transposer_avx512(size_t bytes) noexcept;
Transposer transposer_short(size_t bytes, Isa isa) noexcept;

}  // namespace vecmpi::kernels
