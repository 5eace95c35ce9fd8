// SPDX-License-Identifier: BSD-3-Clause
// Columns of a matrix, one after the other in the stream: a transposition. Baseline code: vector
// code is elsewhere.
#include <algorithm>
#include <cstdlib>

#include "blocks.hpp"
#include "cpu.hpp"

namespace vecmpi::kernels {

namespace {

// Rows of a tile. With 64 bytes of each row, it has 4 KiB of memory and as much of the stream.
constexpr size_t tile_rows = 64;

char* place_of(char* memory, const Grid& grid, size_t column, size_t row) noexcept {
    return memory + static_cast<int64_t>(column) * grid.column_stride +
           static_cast<int64_t>(row) * grid.row_stride;
}

// A few columns of a tile, one after the other: the lines of their rows stay in the cache.
void copy_by_tiles(Direction direction, char* packed, char* memory, const Grid& grid,
                   size_t packed_stride, Isa isa) noexcept {
    const auto distance = static_cast<size_t>(std::abs(grid.column_stride));
    const size_t tile_columns = std::max<size_t>(register_bytes / std::max<size_t>(distance, 1), 4);
    const CopyStrided copy = strided_copy(grid.bytes, isa);
    const auto dense = static_cast<ptrdiff_t>(grid.bytes);
    for (size_t first = 0; first < grid.columns; first += tile_columns) {
        const size_t end = std::min(first + tile_columns, grid.columns);
        for (size_t row = 0; row < grid.rows; row += tile_rows) {
            const size_t rows = std::min(tile_rows, grid.rows - row);
            for (size_t column = first; column < end; ++column) {
                char* const in_stream = packed + column * packed_stride + row * grid.bytes;
                char* const in_memory = place_of(memory, grid, column, row);
                if (direction == Direction::pack)
                    copy({in_stream, dense, in_memory, grid.row_stride, rows, grid.bytes});
                else
                    copy({in_memory, grid.row_stride, in_stream, dense, rows, grid.bytes});
            }
        }
    }
}

// Elements up to the next multiple of a register's bytes; 0 where elements cross these anyway.
size_t before_register(const char* address, size_t bytes, size_t most, size_t row_bytes) noexcept {
    const size_t past = reinterpret_cast<uintptr_t>(address) % row_bytes;
    if (past % bytes != 0) return 0;
    return std::min((row_bytes - past) % row_bytes / bytes, most);
}

// Is a grid to be moved column by column? Yes, where it exceeds the second-level cache, and the
// rows of a column do not fall on the same few lines of that. GB/s by column and by tiles: 724 x
// 724 doubles (4 MiB) 5.6 and 2.5; 1024 x 1024 floats, whose rows do fall so, 0.4 and 5.
bool goes_by_columns(const Grid& grid) noexcept {
    constexpr size_t large = size_t{2} << 20;
    constexpr int64_t collides = 1024;
    return grid.columns * grid.rows * grid.bytes >= large && grid.row_stride % collides != 0;
}

void copy_by_columns(Direction direction, char* packed, char* memory, const Grid& grid,
                     Isa isa) noexcept {
    const CopyStrided copy = strided_copy(grid.bytes, isa);
    const auto dense = static_cast<ptrdiff_t>(grid.bytes);
    for (size_t column = 0; column < grid.columns; ++column) {
        char* const in_stream = packed + column * grid.rows * grid.bytes;
        char* const in_memory = place_of(memory, grid, column, 0);
        if (direction == Direction::pack)
            copy({in_stream, dense, in_memory, grid.row_stride, grid.rows, grid.bytes});
        else
            copy({in_memory, grid.row_stride, in_stream, dense, grid.rows, grid.bytes});
    }
}

// None where columns are no neighbours, or registers do not transpose such elements.
Transposer transposer_of(const Grid& grid, Isa isa) noexcept {
    if (grid.column_stride != static_cast<int64_t>(grid.bytes)) return {};
    const Transposer wide = isa == Isa::avx512 ? transposer_avx512(grid.bytes) : Transposer{};
    return wide.transpose != nullptr ? wide : transposer_short(grid.bytes, isa);
}

// Columns and rows are multiples of a tile's. They are moved in squares of 8 x 8 tiles: 32 KiB of
// memory with the widest registers, and as much of the stream, each on 64 pages at most.
void copy_tiles(Direction direction, char* packed, char* memory, const Grid& grid,
                ptrdiff_t packed_stride, const Transposer& transposer) noexcept {
    const size_t side = transposer.row_bytes / grid.bytes, square = 8 * side;
    const auto row_bytes = static_cast<ptrdiff_t>(transposer.row_bytes);
    const ptrdiff_t tile_stride = static_cast<ptrdiff_t>(side) * grid.row_stride;
    const auto copy_column = [&](size_t column, size_t row, size_t rows) noexcept {
        char* const in_memory = place_of(memory, grid, column, row);
        char* const in_stream =
            packed + static_cast<ptrdiff_t>(column) * packed_stride + row * grid.bytes;
        if (direction == Direction::pack)
            transposer.transpose({in_stream, packed_stride, row_bytes, in_memory, grid.row_stride,
                                  tile_stride, rows / side});
        else
            transposer.transpose({in_memory, grid.row_stride, tile_stride, in_stream, packed_stride,
                                  row_bytes, rows / side});
    };
    for (size_t first = 0; first < grid.columns; first += square)
        for (size_t row = 0; row < grid.rows; row += square)
            for (size_t column = first; column < std::min(first + square, grid.columns);
                 column += side)
                copy_column(column, row, std::min(square, grid.rows - row));
}

}  // namespace

bool is_transposed_in_registers(const Grid& grid, Isa cap) noexcept {
    return transposer_of(grid, capped_isa(best_isa(), cap)).transpose != nullptr;
}

// 1. Columns and rows before the first whole register. 2. Whole tiles, in registers. 3. The rest.
void copy_grid(Direction direction, char* packed, char* memory, const Grid& grid,
               Isa cap) noexcept {
    const Isa isa = capped_isa(best_isa(), cap);
    const size_t packed_stride = grid.rows * grid.bytes;
    if (goes_by_columns(grid)) return copy_by_columns(direction, packed, memory, grid, isa);
    const Transposer transposer = transposer_of(grid, isa);
    if (transposer.transpose == nullptr)
        return copy_by_tiles(direction, packed, memory, grid, packed_stride, isa);
    const auto copy_part = [&](size_t column, size_t row, size_t columns, size_t rows,
                               bool tiles) noexcept {
        if (columns == 0 || rows == 0) return;
        Grid part = grid;
        part.columns = columns;
        part.rows = rows;
        char* const in_stream = packed + column * packed_stride + row * grid.bytes;
        char* const in_memory = place_of(memory, grid, column, row);
        if (tiles)
            copy_tiles(direction, in_stream, in_memory, part, static_cast<ptrdiff_t>(packed_stride),
                       transposer);
        else
            copy_by_tiles(direction, in_stream, in_memory, part, packed_stride, isa);
    };
    const size_t side = transposer.row_bytes / grid.bytes;
    const size_t left = before_register(memory, grid.bytes, grid.columns, transposer.row_bytes);
    const size_t above =
        before_register(packed + left * packed_stride, grid.bytes, grid.rows, transposer.row_bytes);
    const size_t columns = (grid.columns - left) / side * side;
    const size_t rows = (grid.rows - above) / side * side;
    const size_t right = left + columns, below = above + rows;
    copy_part(0, 0, left, grid.rows, false);  // 1
    copy_part(left, 0, columns, above, false);
    copy_part(left, above, columns, rows, true);                // 2
    copy_part(left, below, columns, grid.rows - below, false);  // 3
    copy_part(right, 0, grid.columns - right, grid.rows, false);
}

}  // namespace vecmpi::kernels
