// SPDX-License-Identifier: BSD-3-Clause
// What one element of a reduction must become, written down a second time and without any code of
// src/kernels. Slow, and meant to be read.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/api.hpp"

namespace twin {

enum class Kind : unsigned char { i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64, f80 };

// A number inside an element, and how far from its start.
struct Part {
    Kind kind;
    size_t at;
};
std::vector<Part> parts_of(vecmpi::kernels::ElementType type);
size_t bytes_of(vecmpi::kernels::ElementType type);
bool is_pair(vecmpi::kernels::ElementType type);

// Whether MPICH 4.0.2 implements the op for the type.
bool is_legal(vecmpi::kernels::ReduceOp op, vecmpi::kernels::ElementType type);

// out = inout op in, with inout's padding. The arrays do not overlap.
void reduce_element(vecmpi::kernels::ReduceOp op, vecmpi::kernels::ElementType type,
                    const unsigned char* in, const unsigned char* inout, unsigned char* out);

const char* name_of(vecmpi::kernels::ReduceOp op);
const char* name_of(vecmpi::kernels::ElementType type);

}  // namespace twin
