// SPDX-License-Identifier: BSD-3-Clause
// MINLOC and MAXLOC of pairs (value, index), two lanes of 32 or 64 bits. Two vectors of pairs
// become one of values and one of indices, and back. That gives 120 GB/s, where comparing in place
// gave 60 to 90 (AVX-512, 256 KiB).
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

// How a pair lies in its two lanes of type T: the type that lanes are compared as, how far the
// padding above is shifted out (signed integers keep their order), and the bits that data have.
template <class Lane_, class Value_, int value_bits_, class Index_, int index_bits_>
struct Layout {
    using T = Lane_;
    using Value = Value_;
    using Index = Index_;
    static constexpr int value_bits = value_bits_;
    static constexpr int index_bits = index_bits_;
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

// All ones in the lower `bits` bits of each lane.
template <int bits, class D>
HWY_INLINE hn::Vec<D> lower_bits(D d) {
    return hn::Set(d, static_cast<Lane<D>>(~Lane<D>{0}) >> (8 * sizeof(Lane<D>) - bits));
}

// ---- two vectors of pairs: their values, their indices, and back --------------------------------
//
// In which order the lanes come is the target's choice. to_pairs() undoes it.

#if HWY_ARCH_X86

// The even (0x88) or odd (0xDD) lanes of each block of a, then of b.
template <int lanes>
HWY_INLINE __m128i shuffled(__m128i a, __m128i b) {
    return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), lanes));
}
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
template <int lanes>
HWY_INLINE __m256i shuffled(__m256i a, __m256i b) {
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), lanes));
}
#endif
#if HWY_TARGET == HWY_AVX3
template <int lanes>
HWY_INLINE __m512i shuffled(__m512i a, __m512i b) {
    return _mm512_castps_si512(
        _mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), lanes));
}
#endif

template <class D, class V>
HWY_INLINE V values_of(D d, V a, V b) {
    if constexpr (sizeof(Lane<D>) == 8)
        return hn::InterleaveLower(d, a, b);
    else
        return V{shuffled<0x88>(a.raw, b.raw)};
}
template <class D, class V>
HWY_INLINE V indices_of(D d, V a, V b) {
    if constexpr (sizeof(Lane<D>) == 8)
        return hn::InterleaveUpper(d, a, b);
    else
        return V{shuffled<0xDD>(a.raw, b.raw)};
}
template <class D, class V>
HWY_INLINE void to_pairs(D d, V values, V indices, V& a, V& b) {
    a = b = hn::InterleaveLower(d, values, indices);
    if constexpr (hn::MaxLanes(D()) * sizeof(Lane<D>) >= 16)  // what is shorter comes singly
        b = hn::InterleaveUpper(d, values, indices);
}

#else

template <class D, class V>
HWY_INLINE V values_of(D, V a, V b) {
    return hn::OddEven(hn::DupEven(b), a);
}
template <class D, class V>
HWY_INLINE V indices_of(D, V a, V b) {
    return hn::OddEven(b, hn::DupOdd(a));
}
template <class D, class V>
HWY_INLINE void to_pairs(D, V values, V indices, V& a, V& b) {
    a = hn::OddEven(hn::DupEven(indices), values);
    b = hn::OddEven(indices, hn::DupOdd(values));
}

#endif

// ---- values and indices -------------------------------------------------------------------------

template <bool want_min, class V>
HWY_INLINE auto is_better(V inout, V in) {
    if constexpr (want_min)
        return hn::Gt(inout, in);
    else
        return hn::Lt(inout, in);
}

// (inout < in) ? inout : in, of indices as floats. MPICH's code has MINPS there on x86, which under
// DAZ returns a subnormal number as zero. All else in these ops only copies.
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

// Integer indices have 32 bits, whatever the lane.
template <class L, class D, class V>
HWY_INLINE V smaller_index(D d, V inout, V in) {
    if constexpr (hwy::IsFloat<typename L::Index>()) {
        return smaller_float(d, inout, in);
    } else {
        const hn::Repartition<int32_t, D> d32;
        return hn::BitCast(d, hn::Min(hn::BitCast(d32, inout), hn::BitCast(d32, in)));
    }
}

// `changed`, with the padding of `before`.
template <int bits, class D, class V>
HWY_INLINE V with_padding_of(D d, V before, V changed) {
    if constexpr (bits == 8 * sizeof(Lane<D>))
        return changed;
    else
        return hn::IfVecThenElse(lower_bits<bits>(d), changed, before);
}

// inout = the better value with its index. Of equal values it is the smaller index with inout's
// value, so a zero keeps its sign. A NaN is neither better nor equal: inout stays.
template <class L, bool want_min>
struct Locate {
    template <class D, class V>
    HWY_INLINE static void two(D d, V inout0, V inout1, V in0, V in1, V& result0, V& result1) {
        const V inout = values_of(d, inout0, inout1), in = values_of(d, in0, in1);
        const V inout_index = indices_of(d, inout0, inout1), in_index = indices_of(d, in0, in1);
        const auto a = comparable<typename L::Value, L::value_bits>(d, inout);
        const auto b = comparable<typename L::Value, L::value_bits>(d, in);
        const auto better = hn::RebindMask(d, is_better<want_min>(a, b));
        const auto equal = hn::RebindMask(d, hn::Eq(a, b));
        const V tied =
            hn::IfThenElse(equal, smaller_index<L>(d, inout_index, in_index), inout_index);
        const V value = hn::IfThenElse(better, in, inout);
        const V index = hn::IfThenElse(better, in_index, tied);
        to_pairs(d, with_padding_of<L::value_bits>(d, inout, value),
                 with_padding_of<L::index_bits>(d, inout_index, index), result0, result1);
    }
    template <class D, class V>
    HWY_INLINE V operator()(D d, V inout, V in) const {
        V result, unused;
        two(d, inout, inout, in, in, result, unused);
        return result;
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
