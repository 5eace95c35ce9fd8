// SPDX-License-Identifier: BSD-3-Clause
// The one matrix product of the demo program. Plain loops for the compiler to vectorise; not a
// kernel for other use.
#pragma once

#include <cstddef>

namespace example {

// A matrix that is read as it lies in memory or transposed: element (i, k) is
// data[i * row_stride + k * column_stride].
struct MatrixView {
    const float* data;
    std::size_t row_stride;
    std::size_t column_stride;
};

// c (rows × columns) += a (rows × depth) · b (depth × columns); b and c are dense, row by row.
// Every element is summed in the order of depth, four terms at a time, whatever the vector width:
// the result does not depend on the machine.
void multiply_add(float* c, MatrixView a, const float* b, std::size_t rows, std::size_t depth,
                  std::size_t columns);

// target (columns × rows) = source (rows × columns) transposed; both dense.
void transpose(float* target, const float* source, std::size_t rows, std::size_t columns);

}  // namespace example
