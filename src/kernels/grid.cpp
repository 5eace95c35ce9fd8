// SPDX-License-Identifier: BSD-3-Clause
// Columns of a matrix, one after the other in the stream: a transposition. Baseline code: the
// vectors are elsewhere.
#include <algorithm>
#include <cstdlib>

#include "blocks.hpp"
#include "cpu.hpp"

namespace vecmpi {

using namespace kernels;

namespace {

// Rows of a tile: with 64 bytes of each row, 4 KiB of memory and as much of the stream.
constexpr size_t tile_rows = 64;

// One row of a tile at a time: its blocks are neighbours in memory, and a column apart in the
// stream.
void copy_tile(Direction direction, char* packed, char* memory, const Grid& grid,
               size_t packed_stride, CopyStrided copy) noexcept {
    const auto apart = static_cast<ptrdiff_t>(packed_stride);
    for (size_t row = 0; row < grid.rows; ++row) {
        char* const in_stream = packed + row * grid.bytes;
        char* const in_memory = memory + static_cast<int64_t>(row) * grid.row_stride;
        if (direction == Direction::pack)
            copy({in_stream, apart, in_memory, grid.column_stride, grid.columns, grid.bytes});
        else
            copy({in_memory, grid.column_stride, in_stream, apart, grid.columns, grid.bytes});
    }
}

void copy_by_tiles(Direction direction, char* packed, char* memory, const Grid& grid,
                   size_t packed_stride, Isa isa) noexcept {
    const auto distance = static_cast<size_t>(std::abs(grid.column_stride));
    const size_t tile_columns = std::max<size_t>(register_bytes / std::max<size_t>(distance, 1), 4);
    const CopyStrided copy = strided_copy(grid.bytes, isa);
    for (size_t row = 0; row < grid.rows; row += tile_rows) {
        for (size_t column = 0; column < grid.columns; column += tile_columns) {
            Grid tile = grid;
            tile.columns = std::min(tile_columns, grid.columns - column);
            tile.rows = std::min(tile_rows, grid.rows - row);
            copy_tile(direction, packed + column * packed_stride + row * grid.bytes,
                      memory + static_cast<int64_t>(column) * grid.column_stride +
                          static_cast<int64_t>(row) * grid.row_stride,
                      tile, packed_stride, copy);
        }
    }
}

}  // namespace

// 1. Whole tiles in registers. 2. The columns beside them. 3. The rows below them.
void copy_grid(Direction direction, char* packed, char* memory, const Grid& grid,
               Isa cap) noexcept {
    const Isa isa = capped_isa(best_isa(), cap);
    const size_t packed_stride = grid.rows * grid.bytes;
    const bool in_registers = isa == Isa::avx512 && (grid.bytes == 4 || grid.bytes == 8) &&
                              grid.column_stride == static_cast<int64_t>(grid.bytes);
    if (!in_registers) return copy_by_tiles(direction, packed, memory, grid, packed_stride, isa);
    const size_t side = register_bytes / grid.bytes;
    Grid tiles = grid;
    tiles.columns -= grid.columns % side;
    tiles.rows -= grid.rows % side;
    copy_tiles_avx512(direction, packed, memory, tiles, packed_stride);  // 1
    Grid beside = grid;                                                  // 2
    beside.columns = grid.columns - tiles.columns;
    copy_by_tiles(direction, packed + tiles.columns * packed_stride,
                  memory + tiles.columns * grid.bytes, beside, packed_stride, isa);
    Grid below = tiles;  // 3
    below.rows = grid.rows - tiles.rows;
    copy_by_tiles(direction, packed + tiles.rows * grid.bytes,
                  memory + static_cast<int64_t>(tiles.rows) * grid.row_stride, below, packed_stride,
                  isa);
}

}  // namespace vecmpi
