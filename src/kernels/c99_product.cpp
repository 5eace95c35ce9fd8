// SPDX-License-Identifier: BSD-3-Clause
// A file of its own, so that it is compiled for the baseline and no wider.
#include "c99_product.hpp"

#include "scalar_ops.hpp"

namespace vecmpi::kernels {
namespace {

using namespace scalar;

template <class T>
void multiply_parts(const T* in, T* inout, size_t count) noexcept {
    for (size_t i = 0; i != 2 * count; i += 2) {
        ReIm<T> product =
            ComplexProdC99()(ReIm<T>{inout[i], inout[i + 1]}, ReIm<T>{in[i], in[i + 1]});
        inout[i] = product.re;
        inout[i + 1] = product.im;
    }
}

}  // namespace

void multiply_c99(const float* in, float* inout, size_t count) noexcept {
    multiply_parts(in, inout, count);
}
void multiply_c99(const double* in, double* inout, size_t count) noexcept {
    multiply_parts(in, inout, count);
}

}  // namespace vecmpi::kernels
