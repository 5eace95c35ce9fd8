// SPDX-License-Identifier: BSD-3-Clause
// Conversions between float and its two 16-bit forms, by their bits.
#include <algorithm>
#include <bit>

#include "scalar_elements.hpp"

namespace vecmpi::kernels {
namespace {

constexpr uint32_t sign_bit = 0x80000000;
constexpr uint32_t infinity = 0x7F800000;
constexpr uint32_t quiet_bit = 0x00400000;

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

// Beside 2^(e+13), where e is the number's exponent, the unit of a float is that of the half: the
// addition rounds. Half subnormals share the unit of the smallest normal ones, 2^-24.
uint16_t ScalarFloat16::narrow(float wide) noexcept {
    constexpr uint32_t below_overflow = 0x477FFF00;   // 65535, which rounds to 65504 or infinity
    constexpr uint32_t smallest_normal = 0x38800000;  // 2^-14
    constexpr uint32_t exponent_mask = infinity, fraction_mask = 0x7FFFFF;
    const uint32_t bits = std::bit_cast<uint32_t>(wide);
    const uint32_t sign = bits & sign_bit;
    uint32_t magnitude = bits & ~sign_bit;
    uint32_t half = 0x7C00;
    if (magnitude > infinity) {
        half = 0x7E00 | (magnitude >> 13 & 0x3FF);
    } else if (magnitude < infinity) {
        magnitude = std::min(magnitude, below_overflow);
        const uint32_t exponent = std::max(magnitude, smallest_normal) & exponent_mask;
        const float unit_setter = std::bit_cast<float>(sign | (exponent + (13U << 23)));
        const float sum = std::bit_cast<float>(sign | magnitude) + unit_setter;
        const uint32_t units = std::bit_cast<uint32_t>(sum) & fraction_mask;
        half = ((exponent - smallest_normal) >> 13) + units;  // a carry raises the exponent
    }
    return static_cast<uint16_t>(sign >> 16 | half);
}

float ScalarBFloat16::widen(uint16_t half) noexcept {
    return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

uint16_t ScalarBFloat16::narrow(float wide) noexcept {
    const uint32_t bits = std::bit_cast<uint32_t>(wide);
    return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

uint16_t ScalarBFloat16HalfUp::narrow(float wide) noexcept {
    return static_cast<uint16_t>((std::bit_cast<uint32_t>(wide) + 0x8000) >> 16);
}

}  // namespace vecmpi::kernels
