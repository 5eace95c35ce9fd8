// SPDX-License-Identifier: BSD-3-Clause
// SUM and PROD of complex numbers in float and double. An element is two lanes: re, im.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/complex.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "c99_product.hpp"
#include "loop-inl.hpp"
#include "ordered-inl.hpp"

#if VECMPI_VECTOR_TARGET
HWY_BEFORE_NAMESPACE();
namespace vecmpi::kernels::HWY_NAMESPACE {
namespace {

// Which operand comes first decides which of two NaNs survives. It is as in MPICH 4.0.2's machine
// code (Debian 12, MPI_Reduce_local on all pairs of NaNs): `in` in sums of Fortran's and C++'s
// types, `inout` in those of C's.
struct ComplexSum {
    template <class D, class V>
    HWY_INLINE V operator()(D, V inout, V in) const {
        return add_ordered(in, inout);
    }
};

struct ComplexSumC99 {
    template <class D, class V>
    HWY_INLINE V operator()(D, V inout, V in) const {
        return add_ordered(inout, in);
    }
};

// inout = (re, im) becomes (in.re*re - im*in.im, im*in.re + re*in.im). Each operation is rounded,
// and has its operands in this order: MPICH's, as above.
struct ComplexProd {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        const V first = hn::OddEven(inout, in);                // in.re, im
        const V second = hn::OddEven(hn::DupEven(in), inout);  // re, in.re
        const V crossed = multiply_ordered(hn::Reverse2(d, inout), hn::DupOdd(in));
        return subtract_add_ordered(multiply_ordered(first, second), crossed);
    }
};

// C's product. An element that comes out as NaN is left to the C operator: the rules of annex G may
// recover an infinity, and which NaN survives is the compiler's choice. That is rare, and then
// slow: two stores, a call and a load for each vector.
struct ComplexProdC99 {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        const V product =
            subtract_add_ordered(multiply_ordered(inout, hn::DupEven(in)),
                                 multiply_ordered(hn::Reverse2(d, inout), hn::DupOdd(in)));
        if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(product)))) return product;
        return recover(d, inout, in);
    }

    template <class D, class V>
    HWY_INLINE static V recover(D d, V inout, V in) {
        HWY_ALIGN Lane<D> a[hn::MaxLanes(D())];
        HWY_ALIGN Lane<D> b[hn::MaxLanes(D())];
        hn::StoreU(inout, d, a);
        hn::StoreU(in, d, b);
        multiply_c99(b, a, hn::Lanes(d) / 2);
        return hn::LoadU(d, a);
    }
};

ReduceKernel complex(ReduceOp op, ElementType type) noexcept {
    if (op == ReduceOp::sum) {
        switch (type) {
            case ElementType::c32:
                return by_lane<ComplexSum, float, 2>();
            case ElementType::c64:
                return by_lane<ComplexSum, double, 2>();
            case ElementType::c32_c99:
                return by_lane<ComplexSumC99, float, 2>();
            case ElementType::c64_c99:
                return by_lane<ComplexSumC99, double, 2>();
            default:
                return {};
        }
    }
    if (op == ReduceOp::prod) {
        switch (type) {
            case ElementType::c32:
                return by_two_lanes<ComplexProd, float>();
            case ElementType::c64:
                return by_two_lanes<ComplexProd, double>();
            case ElementType::c32_c99:
                return by_two_lanes<ComplexProdC99, float>();
            case ElementType::c64_c99:
                return by_two_lanes<ComplexProdC99, double>();
            default:
                return {};
        }
    }
    return {};
}

}  // namespace
}  // namespace vecmpi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // VECMPI_VECTOR_TARGET

#if HWY_ONCE
namespace vecmpi::kernels {
const FamilyLookup complex_by_isa[number_of_isas] = VECMPI_BY_ISA(complex);
}  // namespace vecmpi::kernels
#endif
