// SPDX-License-Identifier: BSD-3-Clause
// MAX, MIN, SUM and PROD of integers, float and double.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arithmetic.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "loop-inl.hpp"
#include "ordered-inl.hpp"

#if VECMPI_VECTOR_TARGET
HWY_BEFORE_NAMESPACE();
namespace vecmpi::kernels::HWY_NAMESPACE {
namespace {

// (inout > in) ? inout : in. So a NaN on either side, or zeros of different signs, give `in`.
struct Max {
    template <class D, class V>
    HWY_INLINE V operator()(D, V inout, V in) const {
        if constexpr (hwy::IsFloat<Lane<D>>())
            return hn::IfThenElse(hn::Gt(inout, in), inout, in);
        else
            return hn::Max(inout, in);
    }
};

struct Min {
    template <class D, class V>
    HWY_INLINE V operator()(D, V inout, V in) const {
        if constexpr (hwy::IsFloat<Lane<D>>())
            return hn::IfThenElse(hn::Lt(inout, in), inout, in);
        else
            return hn::Min(inout, in);
    }
};

// The same by MAXPD and MINPD. MPICH has these on x86 for MPI_DOUBLE, and from 4.3 on MAXPS and
// MINPS for MPI_FLOAT. They return what the selection does, but under DAZ a subnormal result as
// zero. Arm's FMAX treats NaNs and zeros otherwise.
struct MaxInstruction {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        return HWY_ARCH_X86 ? hn::Max(inout, in) : Max()(d, inout, in);
    }
};

struct MinInstruction {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        return HWY_ARCH_X86 ? hn::Min(inout, in) : Min()(d, inout, in);
    }
};

// Integers wrap.
struct Sum {
    template <class D, class V>
    HWY_INLINE V operator()(D, V inout, V in) const {
        if constexpr (hwy::IsFloat<Lane<D>>())
            return add_ordered(inout, in);
        else
            return hn::Add(inout, in);
    }
};

// No instruction set multiplies bytes. They are multiplied as 16-bit lanes: once for the lower byte
// of each, and once for the upper byte, with the other factor's lower byte shifted out.
template <class D, class V>
HWY_INLINE V multiply_bytes(D d, V inout, V in) {
    if constexpr (!HWY_HAVE_SCALABLE && hn::MaxLanes(D()) == 1) {  // half a 16-bit lane
        const hn::Rebind<uint16_t, D> wide;
        return hn::TruncateTo(d, hn::Mul(hn::PromoteTo(wide, inout), hn::PromoteTo(wide, in)));
    } else {
        const hn::Repartition<uint16_t, D> wide;
        const auto a = hn::BitCast(wide, inout);
        const auto b = hn::BitCast(wide, in);
        const auto upper_byte = hn::Set(wide, uint16_t{0xFF00});
        const auto lower = hn::AndNot(upper_byte, hn::Mul(a, b));
        const auto upper = hn::Mul(hn::And(a, upper_byte), hn::ShiftRight<8>(b));
        return hn::BitCast(d, hn::Or(lower, upper));
    }
}

struct Prod {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        if constexpr (hwy::IsFloat<Lane<D>>())
            return multiply_ordered(inout, in);
        else if constexpr (sizeof(Lane<D>) == 1)
            return multiply_bytes(d, inout, in);
        else
            return hn::Mul(inout, in);
    }
};

// Wrapped sums and products have the same bits with and without sign.
template <class Op>
ReduceKernel either_sign(ElementType type) noexcept {
    switch (type) {
        case ElementType::f32:
        case ElementType::f32_flushed:
            return by_lane<Op, float>();
        case ElementType::f64:
        case ElementType::f64_fortran:
            return by_lane<Op, double>();
        default:
            return by_width<Op>(type);
    }
}

template <class Op, class Instruction>
ReduceKernel each_type(ElementType type) noexcept {
    switch (type) {
        case ElementType::i8:
            return by_lane<Op, int8_t>();
        case ElementType::u8:
            return by_lane<Op, uint8_t>();
        case ElementType::i16:
            return by_lane<Op, int16_t>();
        case ElementType::u16:
            return by_lane<Op, uint16_t>();
        case ElementType::i32:
            return by_lane<Op, int32_t>();
        case ElementType::u32:
            return by_lane<Op, uint32_t>();
        case ElementType::i64:
            return by_lane<Op, int64_t>();
        case ElementType::u64:
            return by_lane<Op, uint64_t>();
        case ElementType::f32:
            return by_lane<Op, float>();
        case ElementType::f32_flushed:
            return by_lane<Instruction, float>();
        case ElementType::f64:
            return by_lane<Instruction, double>();
        case ElementType::f64_fortran:
            return by_lane<Op, double>();
        default:
            return {};
    }
}

ReduceKernel arithmetic(ReduceOp op, ElementType type) noexcept {
    switch (op) {
        case ReduceOp::max:
            return each_type<Max, MaxInstruction>(type);
        case ReduceOp::min:
            return each_type<Min, MinInstruction>(type);
        case ReduceOp::sum:
            return either_sign<Sum>(type);
        case ReduceOp::prod:
            return either_sign<Prod>(type);
        default:
            return {};
    }
}

}  // namespace
}  // namespace vecmpi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // VECMPI_VECTOR_TARGET

#if HWY_ONCE
namespace vecmpi::kernels {
const FamilyLookup arithmetic_by_isa[number_of_isas] = VECMPI_BY_ISA(arithmetic);
}  // namespace vecmpi::kernels
#endif
