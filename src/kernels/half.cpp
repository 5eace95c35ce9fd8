// SPDX-License-Identifier: BSD-3-Clause
// MAX, MIN, SUM and PROD of float16 and bfloat16.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/half.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "loop-inl.hpp"
#include "ordered-inl.hpp"

#if VECMPI_VECTOR_TARGET
HWY_BEFORE_NAMESPACE();
namespace vecmpi::kernels::HWY_NAMESPACE {
namespace {

constexpr uint16_t infinity_f16 = 0x7C00;
constexpr uint16_t infinity_bf16 = 0x7F80;

// Max and Min compare bits, and return one operand unchanged. Bits above those of infinity are
// NaNs.
template <class D, class V>
HWY_INLINE auto magnitude(D, V bits) {
    const hn::RebindToSigned<D> di;
    return hn::And(hn::BitCast(di, bits), hn::Set(di, int16_t{0x7FFF}));
}

// An integer in the order of the floats; both zeros are 0.
template <class D, class V>
HWY_INLINE auto sort_key(D d, V bits) {
    const hn::RebindToSigned<D> di;
    const auto negative = hn::ShiftRight<15>(hn::BitCast(di, bits));  // all ones, or zero
    return hn::Sub(hn::Xor(magnitude(d, bits), negative), negative);
}

template <uint16_t infinity, class D, class V>
HWY_INLINE auto either_is_nan(D d, V a, V b) {
    const hn::RebindToSigned<D> di;
    const auto limit = hn::Set(di, int16_t{infinity});
    return hn::Or(hn::Gt(magnitude(d, a), limit), hn::Gt(magnitude(d, b), limit));
}

template <uint16_t infinity>
struct HalfMax {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        const auto above = hn::Gt(sort_key(d, inout), sort_key(d, in));
        const auto better = hn::AndNot(either_is_nan<infinity>(d, inout, in), above);
        return hn::IfThenElse(hn::RebindMask(d, better), inout, in);
    }
};

template <uint16_t infinity>
struct HalfMin {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        const auto below = hn::Gt(sort_key(d, in), sort_key(d, inout));
        const auto better = hn::AndNot(either_is_nan<infinity>(d, inout, in), below);
        return hn::IfThenElse(hn::RebindMask(d, better), inout, in);
    }
};

// Sum and product are computed as floats, and rounded once more. For float16 that is the correctly
// rounded result, since a float has more than twice its bits. Of two NaNs that of `in` survives, as
// in MPICH from 4.0.2 to 5.0.2.
struct Float16 {
    using Memory = hwy::float16_t;
    template <class D, class V>
    HWY_INLINE static auto widen(D, V v) {
        return hn::PromoteTo(hn::Rebind<float, D>(), v);
    }
    template <class D, class V>
    HWY_INLINE static auto narrow(D d, V v) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
        // By the mode of the thread; DemoteTo asks for nearest even.
        hn::Vec<D> r;
        asm("vcvtps2ph $4, %1, %0" : "=v"(r.raw) : "v"(v.raw));
        return r;
#else
        return hn::DemoteTo(d, v);
#endif
    }
};

enum class Tie { to_even, away_from_zero };

// The rounding to 16 bits knows no mode.
template <Tie tie>
struct BFloat16 {
    using Memory = uint16_t;
    template <class D, class V>
    HWY_INLINE static auto widen(D, V v) {
        const hn::Rebind<float, D> df;
        const hn::Rebind<uint32_t, D> du;
        return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(du, v)));
    }
    // A NaN from widened operands is zero in its lower half, so rounding keeps it.
    template <class D, class V>
    HWY_INLINE static auto narrow(D d, V v) {
        const hn::Rebind<uint32_t, D> du;
        const auto bits = hn::BitCast(du, v);
        auto half = hn::Set(du, 0x8000U);
        if constexpr (tie == Tie::to_even)
            half =
                hn::Add(hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U)), hn::Set(du, 0x7FFFU));
        return hn::TruncateTo(d, hn::ShiftRight<16>(hn::Add(bits, half)));
    }
};

template <class Format>
struct HalfSum {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        return Format::narrow(d, add_ordered(Format::widen(d, in), Format::widen(d, inout)));
    }
};

template <class Format>
struct HalfProd {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        return Format::narrow(d, multiply_ordered(Format::widen(d, in), Format::widen(d, inout)));
    }
};

// As many lanes as a vector has floats.
template <class Op, class T>
constexpr ReduceKernel by_widened_lane() {
    using D = hn::Rebind<T, hn::ScalableTag<float>>;
    return {Forms<Op, 1, 1, D>::into, Forms<Op, 1, 1, D>::to, this_isa};
}

ReduceKernel half_f16(ReduceOp op) noexcept {
    switch (op) {
        case ReduceOp::max:
            return by_lane<HalfMax<infinity_f16>, uint16_t>();
        case ReduceOp::min:
            return by_lane<HalfMin<infinity_f16>, uint16_t>();
#if HWY_TARGET != HWY_SSE4  // no conversion; Highway's own loses infinities and does not round
        case ReduceOp::sum:
            return by_widened_lane<HalfSum<Float16>, Float16::Memory>();
        case ReduceOp::prod:
            return by_widened_lane<HalfProd<Float16>, Float16::Memory>();
#endif
        default:
            return {};
    }
}

template <Tie tie>
ReduceKernel half_bf16(ReduceOp op) noexcept {
    using Format = BFloat16<tie>;
    switch (op) {
        case ReduceOp::max:
            return by_lane<HalfMax<infinity_bf16>, uint16_t>();
        case ReduceOp::min:
            return by_lane<HalfMin<infinity_bf16>, uint16_t>();
        case ReduceOp::sum:
            return by_widened_lane<HalfSum<Format>, typename Format::Memory>();
        case ReduceOp::prod:
            return by_widened_lane<HalfProd<Format>, typename Format::Memory>();
        default:
            return {};
    }
}

ReduceKernel half(ReduceOp op, ElementType type) noexcept {
    if (type == ElementType::f16) return half_f16(op);
    if (type == ElementType::bf16) return half_bf16<Tie::to_even>(op);
    if (type == ElementType::bf16_half_up) return half_bf16<Tie::away_from_zero>(op);
    return {};
}

}  // namespace
}  // namespace vecmpi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // VECMPI_VECTOR_TARGET

#if HWY_ONCE
namespace vecmpi::kernels {
const FamilyLookup half_by_isa[number_of_isas] = VECMPI_BY_ISA(half);
}  // namespace vecmpi::kernels
#endif
