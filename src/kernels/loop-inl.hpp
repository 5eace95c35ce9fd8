// SPDX-License-Identifier: BSD-3-Clause
// The one loop that every vector kernel runs in. Included once per instruction set, by the sources
// that <hwy/foreach_target.h> compiles again and again; nothing else may include it.
//
// A kernel is an Op, a struct with
//     V operator()(D d, V inout, V in) const      one vector of results
//     static void two(D d, V inout0, V inout1, V in0, V in1, V& result0, V& result1)
//                                                 two of them, where that is cheaper; may be
//                                                 missing
// run over lanes of type T. An element may be two lanes (complex, pairs); an Op then sees whole
// elements only: that is the `granule`.
#if defined(VECMPI_KERNELS_LOOP) == defined(HWY_TARGET_TOGGLE)
#ifdef VECMPI_KERNELS_LOOP
#undef VECMPI_KERNELS_LOOP
#else
#define VECMPI_KERNELS_LOOP
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "families.hpp"

// Highway compiles a scalar target as well, which our sources leave empty.
#undef VECMPI_VECTOR_TARGET
#define VECMPI_VECTOR_TARGET (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)

// An array of FamilyLookup by target. For the last pass of a source, when the code of all targets
// exists; the name is defined in each target's namespace.
#undef VECMPI_BY_ISA
#if HWY_ARCH_X86
#define VECMPI_BY_ISA(name) \
    { nullptr, N_SSE4::name, N_AVX2::name, N_AVX3::name, nullptr, nullptr }
#else
#define VECMPI_BY_ISA(name) \
    { nullptr, nullptr, nullptr, nullptr, N_NEON::name, N_SVE::name }
#endif

#if VECMPI_VECTOR_TARGET
HWY_BEFORE_NAMESPACE();
namespace vecmpi::kernels::HWY_NAMESPACE {
namespace {  // internal linkage: the linker must never take this code for another instruction set's

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Lane = hn::TFromD<D>;

// For vectors of floats shorter than 16 bytes Highway loads and stores a single float, which the
// language wants aligned. For integers it copies bytes.
template <class D>
constexpr bool is_loaded_as_bits = hwy::IsFloat<Lane<D>>() && !HWY_HAVE_SCALABLE
                                   && hn::MaxLanes(D()) * sizeof(Lane<D>) < 16;

template <class D, class T = Lane<D>>
HWY_INLINE hn::Vec<D> load(D d, const T* from) {
    if constexpr (is_loaded_as_bits<D>) {
        const hn::RebindToUnsigned<D> du;
        return hn::BitCast(d,
                           hn::LoadU(du, reinterpret_cast<const hn::TFromD<decltype(du)>*>(from)));
    } else {
        return hn::LoadU(d, from);
    }
}

template <class V, class D, class T = Lane<D>>
HWY_INLINE void store(V v, D d, T* to) {
    if constexpr (is_loaded_as_bits<D>) {
        const hn::RebindToUnsigned<D> du;
        hn::StoreU(hn::BitCast(du, v), du, reinterpret_cast<hn::TFromD<decltype(du)>*>(to));
    } else {
        hn::StoreU(v, d, to);
    }
}

template <class Op, class D>
HWY_INLINE hn::Vec<D> combine(D d, const Lane<D>* in, const Lane<D>* inout) {
    return Op()(d, load(d, inout), load(d, in));
}

// Two neighbouring vectors of results. (Vectors of SVE have no size, so no struct can hold them.)
template <class Op, class D, class V>
HWY_INLINE void combine_two(D d, const Lane<D>* in, const Lane<D>* inout, V& result0, V& result1) {
    const size_t lanes = hn::Lanes(d);
    if constexpr (requires { &Op::template two<D, V>; }) {
        Op::two(d, load(d, inout), load(d, inout + lanes), load(d, in), load(d, in + lanes),
                result0, result1);
    } else {
        result0 = combine<Op>(d, in, inout);
        result1 = combine<Op>(d, in + lanes, inout + lanes);
    }
}

// How many lanes, 1 to `lanes`, the first vector takes, so that later stores are aligned. All where
// the output is not aligned to its own lanes.
template <size_t granule, class T>
HWY_INLINE size_t lanes_to_alignment(const T* out, size_t lanes) {
    const size_t past = reinterpret_cast<uintptr_t>(out) % (lanes * sizeof(T));
    return past % (granule * sizeof(T)) == 0 ? lanes - past / sizeof(T) : lanes;
}

// Output that is no input and exceeds the cache is written past it, so that its lines need not be
// read first. Zen 5 with 32 MiB of third-level cache, SUM of float, GB/s with and without: 16 MiB
// 27 and 18, read afterwards 13 and 10; 4 MiB 40 and 39, read afterwards 17 and 24.
constexpr size_t stream_from_bytes = size_t{16} << 20;

template <bool stream, class V, class D, class T = Lane<D>>
HWY_INLINE void put(V v, D d, T* to) {
    if constexpr (stream)
        hn::Stream(v, d, to);
    else
        store(v, d, to);
}

template <size_t granule, class D, class T = Lane<D>>
HWY_INLINE bool is_to_be_streamed(D, const T* in, const T* inout, const T* out, size_t n) {
    // Highway streams 16 bytes at least, whatever the vector.
    constexpr bool is_possible = HWY_ARCH_X86 && hn::MaxLanes(D()) * sizeof(T) >= 16;
    const bool is_apart = out != in && out != inout;
    const bool can_be_aligned = reinterpret_cast<uintptr_t>(out) % (granule * sizeof(T)) == 0;
    return is_possible && n >= stream_from_bytes / sizeof(T) && is_apart && can_be_aligned;
}

// Two vectors or more. The first and the last vector are computed before anything is stored, and
// stored after all else. So they may overlap their neighbours without an element being reduced
// twice, even where the output is an input. Between them come four vectors an iteration, loaded
// before the first of them is stored: so the loads of four are in flight. Then come single ones.
template <class Op, size_t granule, bool stream, class D, class T = Lane<D>>
HWY_INLINE void reduce_long(D d, const T* in, const T* inout, T* out, size_t n) {
    constexpr size_t worth_aligning = 16;  // vectors; below, the extra vector costs more
    const size_t lanes = hn::Lanes(d);
    const size_t end = n - lanes;
    const auto first = combine<Op>(d, in, inout);
    const auto last = combine<Op>(d, in + end, inout + end);
    size_t i = lanes;
    if (n >= worth_aligning * lanes) i = lanes_to_alignment<granule>(out, lanes);
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
        hn::Vec<D> r0, r1, r2, r3;
        combine_two<Op>(d, in + i, inout + i, r0, r1);
        combine_two<Op>(d, in + i + 2 * lanes, inout + i + 2 * lanes, r2, r3);
        put<stream>(r0, d, out + i);
        put<stream>(r1, d, out + i + lanes);
        put<stream>(r2, d, out + i + 2 * lanes);
        put<stream>(r3, d, out + i + 3 * lanes);
    }
    for (; i < end; i += lanes) put<stream>(combine<Op>(d, in + i, inout + i), d, out + i);
    if constexpr (stream) hwy::FlushStream();  // others may read on a flag that follows
    store(first, d, out);
    store(last, d, out + end);
}

#if HWY_HAVE_SCALABLE

template <class Op, class D, class T = Lane<D>>
HWY_INLINE hn::Vec<D> combine_some(D d, svbool_t some, const T* in, const T* inout) {
    return Op()(d, hn::MaskedLoad(some, d, inout), hn::MaskedLoad(some, d, in));
}

// Fewer than two vectors, by masks.
template <class Op, size_t granule, class D, class T = Lane<D>>
HWY_INLINE void reduce_short(D d, const T* in, const T* inout, T* out, size_t n) {
    const size_t lanes = hn::Lanes(d);
    const auto some = hn::FirstN(d, n);
    hn::BlendedStore(combine_some<Op>(d, some, in, inout), some, d, out);
    if (n <= lanes) return;
    const auto rest = hn::FirstN(d, n - lanes);
    hn::BlendedStore(combine_some<Op>(d, rest, in + lanes, inout + lanes), rest, d, out + lanes);
}

#else

// Fewer than two vectors: the first and the last, which overlap. Both are computed before the first
// is stored. Fewer than one: the same with half vectors, down to one element.
template <class Op, size_t granule, class D, class T = Lane<D>>
HWY_INLINE void reduce_short(D d, const T* in, const T* inout, T* out, size_t n) {
    constexpr size_t lanes = hn::MaxLanes(D());
    if (n >= lanes) {
        const size_t end = n - lanes;
        const auto first = combine<Op>(d, in, inout);
        const auto last = combine<Op>(d, in + end, inout + end);
        store(first, d, out);
        store(last, d, out + end);
    } else if constexpr (lanes > granule) {
        reduce_short<Op, granule>(hn::Half<D>(), in, inout, out, n);
    }
}

#endif

// n lanes, whole granules.
template <class Op, size_t granule, class D>
HWY_NOINLINE void reduce(const void* in, const void* inout, void* out, size_t n) noexcept {
    using T = Lane<D>;
    const D d;
    const T* in_lanes = static_cast<const T*>(in);
    const T* inout_lanes = static_cast<const T*>(inout);
    T* out_lanes = static_cast<T*>(out);
    if (n < 2 * hn::Lanes(d))
        reduce_short<Op, granule>(d, in_lanes, inout_lanes, out_lanes, n);
    else if (is_to_be_streamed<granule>(d, in_lanes, inout_lanes, out_lanes, n))
        reduce_long<Op, granule, true>(d, in_lanes, inout_lanes, out_lanes, n);
    else
        reduce_long<Op, granule, false>(d, in_lanes, inout_lanes, out_lanes, n);
}

// Both forms of a kernel; an element has `scale` lanes.
template <class Op, size_t granule, size_t scale, class D>
struct Forms {
    static void into(const void* in, void* inout, size_t count) noexcept {
        reduce<Op, granule, D>(in, inout, inout, count * scale);
    }
    static void to(const void* in, const void* inout, void* out, size_t count) noexcept {
        reduce<Op, granule, D>(in, inout, out, count * scale);
    }
};

#if HWY_TARGET == HWY_AVX3
constexpr Isa this_isa = Isa::avx512;
#elif HWY_TARGET == HWY_AVX2
constexpr Isa this_isa = Isa::avx2;
#elif HWY_TARGET == HWY_SSE4
constexpr Isa this_isa = Isa::sse4;
#elif HWY_TARGET == HWY_NEON
constexpr Isa this_isa = Isa::neon;
#elif HWY_TARGET == HWY_SVE
constexpr Isa this_isa = Isa::sve;
#endif

// An element has `scale` lanes of type T. The Op sees lanes singly, so elements may be cut.
template <class Op, class T, size_t scale = 1>
constexpr ReduceKernel by_lane() {
    using D = hn::ScalableTag<T>;
    return {Forms<Op, 1, scale, D>::into, Forms<Op, 1, scale, D>::to, this_isa};
}

// An element has two lanes of type T, which the Op must see together.
template <class Op, class T>
constexpr ReduceKernel by_two_lanes() {
    using D = hn::ScalableTag<T>;
    return {Forms<Op, 2, 2, D>::into, Forms<Op, 2, 2, D>::to, this_isa};
}

// Integers whose bits come out the same with and without sign.
template <class Op>
ReduceKernel by_width(ElementType type) noexcept {
    switch (type) {
        case ElementType::i8:
        case ElementType::u8:
            return by_lane<Op, uint8_t>();
        case ElementType::i16:
        case ElementType::u16:
            return by_lane<Op, uint16_t>();
        case ElementType::i32:
        case ElementType::u32:
            return by_lane<Op, uint32_t>();
        case ElementType::i64:
        case ElementType::u64:
            return by_lane<Op, uint64_t>();
        default:
            return {};
    }
}

}  // namespace
}  // namespace vecmpi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // VECMPI_VECTOR_TARGET

#endif
