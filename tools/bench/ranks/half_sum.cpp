// SPDX-License-Identifier: BSD-3-Clause
// Conversions between binary16 and float, one number at a time or eight by F16C. No MPI here.
#include "half_sum.hpp"

#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vecmpi::bench {
namespace {

// A half's bits moved to a float's places have an exponent that is 112 too small; the
// multiplication corrects it, for denormal halves too.
float to_float(std::uint16_t half) {
    constexpr std::uint32_t infinity = 0x7c00;
    const std::uint32_t magnitude = half & 0x7fffu, sign = half & 0x8000u;
    const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    const std::uint32_t bits =
        magnitude >= infinity ? 0x7f800000u | magnitude << 13 : std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>(bits | sign << 16);
}

// Rounds to nearest, ties to even: adding `step` to a float drops the bits below the step's last.
std::uint16_t to_half(float number) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(number);
    const std::uint32_t magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);  // NaN
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
    std::uint32_t half;
    if (magnitude < 0x38800000u) {  // below 2^-14: a half without leading one
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        half = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u;
    } else {
        const std::uint32_t odd = magnitude >> 13 & 1;
        half = (magnitude + 0xfffu + odd - 0x38000000u) >> 13;
    }
    return static_cast<std::uint16_t>(sign | half);
}

void add_scalar(const std::uint16_t* in, std::uint16_t* inout, std::size_t count) {
    for (std::size_t i = 0; i < count; i++)
        inout[i] = to_half(to_float(in[i]) + to_float(inout[i]));
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) std::size_t add_eights(const std::uint16_t* in,
                                                           std::uint16_t* inout,
                                                           std::size_t count) {
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const auto* from = reinterpret_cast<const __m128i*>(in + i);
        auto* to = reinterpret_cast<__m128i*>(inout + i);
        const __m256 sum = _mm256_add_ps(_mm256_cvtph_ps(_mm_loadu_si128(from)),
                                         _mm256_cvtph_ps(_mm_loadu_si128(to)));
        _mm_storeu_si128(to, _mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT));
    }
    return i;
}

bool has_f16c() {
    static const bool yes = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
    return yes;
}
#endif

}  // namespace

std::uint16_t half_of(float number) { return to_half(number); }

void add_halves(const std::uint16_t* in, std::uint16_t* inout, std::size_t count) {
    std::size_t done = 0;
#if defined(__x86_64__)
    if (has_f16c()) done = add_eights(in, inout, count);
#endif
    add_scalar(in + done, inout + done, count - done);
}

}  // namespace vecmpi::bench
