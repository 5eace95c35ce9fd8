// SPDX-License-Identifier: BSD-3-Clause
// Conversions without branches, so that the compiler makes vectors of the loops, and the op.
#include "half.hpp"

#include <bit>

namespace example {
namespace {

constexpr std::uint32_t float_infinity = 0x7f800000;

// A half's bits moved to a float's places have an exponent that is 112 too small; the
// multiplication corrects it, for denormal halves too.
float to_float(std::uint16_t half) {
    const std::uint32_t magnitude = half & 0x7fffU, sign = half & 0x8000U;
    const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
    const std::uint32_t special = float_infinity | magnitude << 13;
    const std::uint32_t bits = magnitude >= 0x7c00U ? special : std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>(bits | sign << 16);
}

// Adding 0.5 to a float below 2^-14 leaves a half's denormal in its lowest bits; above, adding half
// of the last place that stays, less one where that place is even, rounds.
std::uint16_t to_half(float number) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(number);
    const std::uint32_t magnitude = bits & 0x7fffffffU, sign = bits >> 16 & 0x8000U;
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    const std::uint32_t denormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
    const std::uint32_t odd = magnitude >> 13 & 1U;
    const std::uint32_t normal = (magnitude + 0xfffU + odd - 0x38000000U) >> 13;
    const std::uint32_t special = magnitude > float_infinity ? 0x7e00U : 0x7c00U;
    const std::uint32_t finite = magnitude < 0x38800000U ? denormal : normal;
    return static_cast<std::uint16_t>(sign | (magnitude >= 0x477ff000U ? special : finite));
}

void add_halves(void* in, void* inout, int* count, MPI_Datatype*) {
    const auto* from = static_cast<const std::uint16_t*>(in);
    auto* to = static_cast<std::uint16_t*>(inout);
    for (int i = 0; i < *count; ++i) to[i] = to_half(to_float(from[i]) + to_float(to[i]));
}

}  // namespace

void to_halves(std::span<const float> floats, std::uint16_t* halves) {
    for (std::size_t i = 0; i < floats.size(); ++i) halves[i] = to_half(floats[i]);
}

void to_floats(const std::uint16_t* halves, std::span<float> floats) {
    for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = to_float(halves[i]);
}

HalfSum::HalfSum() {
    MPI_Type_contiguous(2, MPI_BYTE, &type_);
    MPI_Type_commit(&type_);
    MPI_Op_create(add_halves, 1, &op_);
}

HalfSum::~HalfSum() {
    MPI_Op_free(&op_);
    MPI_Type_free(&type_);
}

}  // namespace example
