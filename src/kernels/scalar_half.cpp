// SPDX-License-Identifier: BSD-3-Clause
// Conversions between float and its two 16-bit forms, by their bits.
#include <bit>

#include "scalar_elements.hpp"

namespace vecmpi::kernels {
namespace {

constexpr uint32_t sign_bit = 0x80000000;
constexpr uint32_t infinity = 0x7F800000;
constexpr uint32_t quiet_bit = 0x00400000;

// value / 2^shift, rounded to nearest even.
uint32_t shift_rounded(uint32_t value, uint32_t shift) noexcept {
    uint32_t half_less = (1U << (shift - 1)) - 1;
    return (value + half_less + (value >> shift & 1)) >> shift;
}

}  // namespace

float ScalarFloat16::widen(uint16_t half) noexcept {
    uint32_t sign = (half & 0x8000U) << 16;
    uint32_t exponent = half >> 10 & 0x1F;
    uint32_t mantissa = half & 0x3FF;
    if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, normal as a float
        float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
        return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
    }
    if (exponent == 0x1F) {
        uint32_t quiet = mantissa != 0 ? quiet_bit : 0;
        return std::bit_cast<float>(sign | infinity | quiet | mantissa << 13);
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t ScalarFloat16::narrow(float wide) noexcept {
    constexpr uint32_t rounds_to_infinity = 0x477FF000;  // 65520
    constexpr uint32_t smallest_normal = 0x38800000;     // 2^-14
    uint32_t bits = std::bit_cast<uint32_t>(wide);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & ~sign_bit;
    uint32_t half = 0;
    if (magnitude > infinity) {
        half = 0x7E00 | (magnitude >> 13 & 0x3FF);
    } else if (magnitude >= rounds_to_infinity) {
        half = 0x7C00;
    } else if (magnitude >= smallest_normal) {
        half = shift_rounded(magnitude - (112U << 23), 13);
    } else if (uint32_t exponent = magnitude >> 23;
               exponent >= 102) {  // from 2^-25: half the least
        half = shift_rounded((magnitude & 0x7FFFFF) | 0x800000, 126 - exponent);
    }
    return static_cast<uint16_t>(sign | half);
}

float ScalarBFloat16::widen(uint16_t half) noexcept {
    return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

uint16_t ScalarBFloat16::narrow(float wide) noexcept {
    return static_cast<uint16_t>(shift_rounded(std::bit_cast<uint32_t>(wide), 16));
}

}  // namespace vecmpi::kernels
