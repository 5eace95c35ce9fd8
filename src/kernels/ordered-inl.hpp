// SPDX-License-Identifier: BSD-3-Clause
// Sums, differences and products of floats with a fixed order of operands. Included once per
// instruction set, as loop-inl.hpp.
//
// Of two NaNs x86 returns the first operand. To the compiler + and * commute: it swaps the operands
// of intrinsics, mostly to fold a load, so that the NaN's payload changes from build to build.
// MPICH 4.0.2 as Debian builds it has inout first in sums and products of float and double, under
// all their names. So instructions are written as such here. These cannot be contracted to a fused
// multiply-add either.
#if defined(VECMPI_KERNELS_ORDERED) == defined(HWY_TARGET_TOGGLE)
#ifdef VECMPI_KERNELS_ORDERED
#undef VECMPI_KERNELS_ORDERED
#else
#define VECMPI_KERNELS_ORDERED
#endif

#include <hwy/highway.h>

#include "loop-inl.hpp"

#if VECMPI_VECTOR_TARGET
HWY_BEFORE_NAMESPACE();
namespace vecmpi::kernels::HWY_NAMESPACE {
namespace {

// One instruction "name r, a, b" on registers of 32-bit (`single`) and 64-bit lanes.
#undef VECMPI_ORDERED
#if HWY_TARGET == HWY_SSE4
#define VECMPI_ORDERED(name, single, r, a, b)             \
    r.raw = a.raw;                                        \
    if constexpr (single)                                 \
        asm(name "ps %1, %0" : "+x"(r.raw) : "x"(b.raw)); \
    else                                                  \
        asm(name "pd %1, %0" : "+x"(r.raw) : "x"(b.raw))
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define VECMPI_ORDERED(name, single, r, a, b)                                 \
    if constexpr (single)                                                     \
        asm("v" name "ps %2, %1, %0" : "=v"(r.raw) : "v"(a.raw), "v"(b.raw)); \
    else                                                                      \
        asm("v" name "pd %2, %1, %0" : "=v"(r.raw) : "v"(a.raw), "v"(b.raw))
#elif HWY_TARGET == HWY_NEON
#define VECMPI_ORDERED(name, single, r, a, b)                                        \
    if constexpr (single)                                                            \
        asm("f" name " %0.4s, %1.4s, %2.4s" : "=w"(r.raw) : "w"(a.raw), "w"(b.raw)); \
    else                                                                             \
        asm("f" name " %0.2d, %1.2d, %2.2d" : "=w"(r.raw) : "w"(a.raw), "w"(b.raw))
#else
#define VECMPI_ORDERED(name, single, r, a, b)                         \
    if constexpr (single)                                             \
        asm("f" name " %0.s, %1.s, %2.s" : "=w"(r) : "w"(a), "w"(b)); \
    else                                                              \
        asm("f" name " %0.d, %1.d, %2.d" : "=w"(r) : "w"(a), "w"(b))
#endif

template <class V>
constexpr bool has_single_lanes = sizeof(hn::TFromV<V>) == 4;

template <class V>
HWY_INLINE V add_ordered(V a, V b) {
    V r;
    VECMPI_ORDERED("add", has_single_lanes<V>, r, a, b);
    return r;
}

template <class V>
HWY_INLINE V subtract_ordered(V a, V b) {
    V r;
    VECMPI_ORDERED("sub", has_single_lanes<V>, r, a, b);
    return r;
}

template <class V>
HWY_INLINE V multiply_ordered(V a, V b) {
    V r;
    VECMPI_ORDERED("mul", has_single_lanes<V>, r, a, b);
    return r;
}

// a - b in even lanes, a + b in odd ones. On x86 nothing else is computed: an operation whose
// result nobody wants could raise an exception that the program traps.
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2
template <class V>
HWY_INLINE V subtract_add_ordered(V a, V b) {
    V r;
    VECMPI_ORDERED("addsub", has_single_lanes<V>, r, a, b);
    return r;
}
#elif HWY_TARGET == HWY_AVX3
template <class V>
HWY_INLINE V subtract_add_ordered(V a, V b) {
    V r = a;
    if constexpr (has_single_lanes<V>)
        asm("vsubps %2, %1, %0 %{%3%}\n\tvaddps %2, %1, %0 %{%4%}"
            : "+&v"(r.raw)
            : "v"(a.raw), "v"(b.raw), "Yk"(__mmask16{0x5555}), "Yk"(__mmask16{0xAAAA}));
    else
        asm("vsubpd %2, %1, %0 %{%3%}\n\tvaddpd %2, %1, %0 %{%4%}"
            : "+&v"(r.raw)
            : "v"(a.raw), "v"(b.raw), "Yk"(__mmask8{0x55}), "Yk"(__mmask8{0xAA}));
    return r;
}
#else
template <class V>
HWY_INLINE V subtract_add_ordered(V a, V b) {
    return hn::OddEven(add_ordered(a, b), subtract_ordered(a, b));
}
#endif

}  // namespace
}  // namespace vecmpi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // VECMPI_VECTOR_TARGET

#endif
