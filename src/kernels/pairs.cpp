// SPDX-License-Identifier: BSD-3-Clause
// MINLOC and MAXLOC of pairs (value, index). A pair is two lanes of 32 or 64 bits, so that nothing
// need be taken apart: values are compared in both lanes of their pair, indices in the odd one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pairs.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "loop-inl.hpp"

#if VECMPI_VECTOR_TARGET
HWY_BEFORE_NAMESPACE();
namespace vecmpi::kernels::HWY_NAMESPACE {
namespace {

// How a pair lies in its two lanes of type T: what to compare lanes as, how many bits to shift out
// the padding above (signed integers keep their order), and how many bits the data has.
template <class Lane_, class Value_, int value_bits_, class Index_, int index_bits_>
struct Layout {
    using T = Lane_;
    using Value = Value_;
    using Index = Index_;
    static constexpr int value_bits = value_bits_;
    static constexpr int index_bits = index_bits_;
    static constexpr int lane_bits = 8 * sizeof(T);
    static constexpr bool has_padding = value_bits < lane_bits || index_bits < lane_bits;
};

using I32I32 = Layout<uint32_t, int32_t, 32, int32_t, 32>;
using F32I32 = Layout<uint32_t, float, 32, int32_t, 32>;
using I16I32 = Layout<uint32_t, int32_t, 16, int32_t, 32>;
using I64I32 = Layout<uint64_t, int64_t, 64, int64_t, 32>;
using F64I32 = Layout<uint64_t, double, 64, int64_t, 32>;
using F32F32 = Layout<uint32_t, float, 32, float, 32>;
using F64F64 = Layout<uint64_t, double, 64, double, 64>;

// The lower `bits` bits of each lane as the upper ones of a lane of type As.
template <class As, int bits, class D, class V>
HWY_INLINE auto comparable(D, V v) {
    constexpr int shift = 8 * sizeof(Lane<D>) - bits;
    const hn::Rebind<As, D> as;
    if constexpr (shift == 0)
        return hn::BitCast(as, v);
    else
        return hn::BitCast(as, hn::ShiftLeft<shift>(v));
}

template <class T, int bits>
constexpr T lower_ones = static_cast<T>(~T{0}) >> (8 * sizeof(T) - bits);
template <class T>
constexpr T lower_ones<T, 0> = 0;

// All ones in the lower `even` bits of even lanes and the lower `odd` bits of odd ones.
template <int even, int odd, class D>
HWY_INLINE hn::Vec<D> lower_bits(D d) {
    return hn::OddEven(hn::Set(d, lower_ones<Lane<D>, odd>), hn::Set(d, lower_ones<Lane<D>, even>));
}

template <bool want_min, class V>
HWY_INLINE auto is_better(V inout, V in) {
    if constexpr (want_min)
        return hn::Gt(inout, in);
    else
        return hn::Lt(inout, in);
}

// (inout < in) ? inout : in, of indices as floats. As MPICH's code has it on x86: MINPS, which
// under DAZ returns a subnormal number as zero, where everything else in these ops only copies.
template <class D, class V>
HWY_INLINE V smaller_float(D d, V inout, V in) {
    const hn::RebindToFloat<D> df;
    const auto a = hn::BitCast(df, inout);
    const auto b = hn::BitCast(df, in);
    if constexpr (HWY_ARCH_X86)
        return hn::BitCast(d, hn::Min(a, b));
    else
        return hn::IfThenElse(hn::RebindMask(d, hn::Lt(a, b)), inout, in);
}

template <class L, class D, class V>
HWY_INLINE V smaller_index(D d, V inout, V in) {
    if constexpr (hwy::IsFloat<typename L::Index>()) {
        return smaller_float(d, inout, in);
    } else {
        const auto a = comparable<typename L::Index, L::index_bits>(d, inout);
        const auto b = comparable<typename L::Index, L::index_bits>(d, in);
        return hn::IfThenElse(hn::RebindMask(d, hn::Lt(a, b)), inout, in);
    }
}

// inout = the better value with its index; of equal values the smaller index, and inout's value (a
// zero keeps its sign). Where a value is NaN nothing is better or equal: inout stays.
template <class L, bool want_min>
struct Locate {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        const auto a = comparable<typename L::Value, L::value_bits>(d, hn::DupEven(inout));
        const auto b = comparable<typename L::Value, L::value_bits>(d, hn::DupEven(in));
        const auto better = hn::RebindMask(d, is_better<want_min>(a, b));
        const auto equal = hn::RebindMask(d, hn::Eq(a, b));
        const auto odd = hn::MaskFromVec(lower_bits<0, L::lane_bits>(d));
        const V tied = hn::IfThenElse(hn::And(equal, odd), smaller_index<L>(d, inout, in), inout);
        const V result = hn::IfThenElse(better, in, tied);
        if constexpr (!L::has_padding) return result;
        const V data = lower_bits<L::value_bits, L::index_bits>(d);
        return hn::IfVecThenElse(data, result, inout);
    }
};

template <bool want_min>
ReduceKernel locate(ElementType type) noexcept {
    switch (type) {
        case ElementType::i32_i32:
            return by_two_lanes<Locate<I32I32, want_min>, I32I32::T>();
        case ElementType::f32_i32:
            return by_two_lanes<Locate<F32I32, want_min>, F32I32::T>();
        case ElementType::i64_i32:
            return by_two_lanes<Locate<I64I32, want_min>, I64I32::T>();
        case ElementType::f64_i32:
            return by_two_lanes<Locate<F64I32, want_min>, F64I32::T>();
        case ElementType::i16_i32:
            return by_two_lanes<Locate<I16I32, want_min>, I16I32::T>();
        case ElementType::f32_f32:
            return by_two_lanes<Locate<F32F32, want_min>, F32F32::T>();
        case ElementType::f64_f64:
            return by_two_lanes<Locate<F64F64, want_min>, F64F64::T>();
        default:
            return {};
    }
}

ReduceKernel pairs(ReduceOp op, ElementType type) noexcept {
    if (op == ReduceOp::minloc) return locate<true>(type);
    if (op == ReduceOp::maxloc) return locate<false>(type);
    return {};
}

}  // namespace
}  // namespace vecmpi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // VECMPI_VECTOR_TARGET

#if HWY_ONCE
namespace vecmpi::kernels {
const FamilyLookup pairs_by_isa[number_of_isas] = VECMPI_BY_ISA(pairs);
}  // namespace vecmpi::kernels
#endif
