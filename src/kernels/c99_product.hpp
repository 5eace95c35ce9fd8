// SPDX-License-Identifier: BSD-3-Clause
// C's product of complex numbers, in baseline code.
#pragma once

#include <cstddef>

namespace vecmpi::kernels {

// inout[i] *= in[i] for `count` complex numbers, each re, im, by C's operator on _Complex. Where
// the plain product is NaN, infinities are recovered (C11 annex G; the compiler's __mulsc3). inout
// is the first operand.
void multiply_c99(const float* in, float* inout, size_t count) noexcept;
void multiply_c99(const double* in, double* inout, size_t count) noexcept;

}  // namespace vecmpi::kernels
