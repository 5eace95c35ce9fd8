// SPDX-License-Identifier: BSD-3-Clause
// The loops behind matrix.hpp. Not a kernel for other use.
#include "matrix.hpp"

#include <algorithm>

namespace example {
namespace {

// Four terms at a time: one load and one store of c for four multiplications.
void add_four_rows(float* __restrict c, const float weight[4], const float* __restrict b,
                   std::size_t columns) {
    const float* b0 = b;
    const float* b1 = b0 + columns;
    const float* b2 = b1 + columns;
    const float* b3 = b2 + columns;
    for (std::size_t j = 0; j < columns; ++j) {
        c[j] += (weight[0] * b0[j] + weight[1] * b1[j]) + (weight[2] * b2[j] + weight[3] * b3[j]);
    }
}

void add_row(float* __restrict c, float weight, const float* __restrict b, std::size_t columns) {
    for (std::size_t j = 0; j < columns; ++j) c[j] += weight * b[j];
}

}  // namespace

void multiply_add(float* c, MatrixView a, const float* b, std::size_t rows, std::size_t depth,
                  std::size_t columns) {
    for (std::size_t i = 0; i < rows; ++i) {
        const float* a_row = a.data + i * a.row_stride;
        float* c_row = c + i * columns;
        std::size_t k = 0;
        for (; k + 4 <= depth; k += 4) {
            const float weight[4] = {
                a_row[(k + 0) * a.column_stride], a_row[(k + 1) * a.column_stride],
                a_row[(k + 2) * a.column_stride], a_row[(k + 3) * a.column_stride]};
            add_four_rows(c_row, weight, b + k * columns, columns);
        }
        for (; k < depth; ++k) {
            add_row(c_row, a_row[k * a.column_stride], b + k * columns, columns);
        }
    }
}

void transpose(float* target, const float* source, std::size_t rows, std::size_t columns) {
    constexpr std::size_t tile = 32;  // 32 × 32 floats: both tiles stay in a 32 KiB cache
    for (std::size_t row = 0; row < rows; row += tile) {
        for (std::size_t column = 0; column < columns; column += tile) {
            for (std::size_t i = row; i < std::min(row + tile, rows); ++i) {
                for (std::size_t j = column; j < std::min(column + tile, columns); ++j) {
                    target[j * rows + i] = source[i * columns + j];
                }
            }
        }
    }
}

}  // namespace example
