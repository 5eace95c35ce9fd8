// SPDX-License-Identifier: BSD-3-Clause
// The twin's arithmetic on single numbers. Integers are computed in 128 bits and cut; 16-bit floats
// in double and rounded by division; floats by single instructions. Only for twin.cpp.
#pragma once

#include <bit>
#include <cfenv>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "twin.hpp"

#if LDBL_MANT_DIG == 113
extern "C" long double __addtf3(long double a, long double b);
extern "C" long double __multf3(long double a, long double b);
#endif

namespace twin {
namespace {

using vecmpi::kernels::ReduceOp;

using Int = __int128;

template <class T>
T read(const unsigned char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <class T>
void write(T value, unsigned char* to) {
    std::memcpy(to, &value, sizeof value);
}

// ---- integers --------------------------------------------------------------------------

size_t bytes_of_integer(Kind kind) { return size_t{1} << static_cast<unsigned>(kind) / 2; }

Int read_integer(Kind kind, const unsigned char* from) {
    switch (kind) {
        case Kind::i8:
            return read<int8_t>(from);
        case Kind::u8:
            return read<uint8_t>(from);
        case Kind::i16:
            return read<int16_t>(from);
        case Kind::u16:
            return read<uint16_t>(from);
        case Kind::i32:
            return read<int32_t>(from);
        case Kind::u32:
            return read<uint32_t>(from);
        case Kind::i64:
            return read<int64_t>(from);
        default:
            return read<uint64_t>(from);
    }
}

void reduce_integer(ReduceOp op, Kind kind, const unsigned char* in, const unsigned char* inout,
                    unsigned char* out) {
    const Int a = read_integer(kind, inout);
    const Int b = read_integer(kind, in);
    Int result = 0;
    switch (op) {
        case ReduceOp::max:
            result = a > b ? a : b;
            break;
        case ReduceOp::min:
            result = a < b ? a : b;
            break;
        case ReduceOp::sum:
            result = a + b;
            break;
        case ReduceOp::prod:
            result = static_cast<Int>(static_cast<unsigned __int128>(a) *
                                      static_cast<unsigned __int128>(b));
            break;
        case ReduceOp::land:
            result = a != 0 && b != 0 ? 1 : 0;
            break;
        case ReduceOp::lor:
            result = a != 0 || b != 0 ? 1 : 0;
            break;
        case ReduceOp::lxor:
            result = (a == 0) == (b == 0) ? 0 : 1;
            break;
        case ReduceOp::band:
            result = a & b;
            break;
        case ReduceOp::bor:
            result = a | b;
            break;
        case ReduceOp::bxor:
            result = a ^ b;
            break;
        default:
            break;
    }
    std::memcpy(out, &result, bytes_of_integer(kind));  // little-endian
}

// ---- floats ----------------------------------------------------------------------------

enum class Sign : unsigned char { plus, minus, times };

// One instruction, `a` first: which of two NaNs survives is the machine's to say, and emulators say
// otherwise than processors.
#if defined(__x86_64__)
float compute(float a, Sign sign, float b) {
    if (sign == Sign::plus) asm volatile("addss %1, %0" : "+x"(a) : "x"(b));
    if (sign == Sign::minus) asm volatile("subss %1, %0" : "+x"(a) : "x"(b));
    if (sign == Sign::times) asm volatile("mulss %1, %0" : "+x"(a) : "x"(b));
    return a;
}
double compute(double a, Sign sign, double b) {
    if (sign == Sign::plus) asm volatile("addsd %1, %0" : "+x"(a) : "x"(b));
    if (sign == Sign::minus) asm volatile("subsd %1, %0" : "+x"(a) : "x"(b));
    if (sign == Sign::times) asm volatile("mulsd %1, %0" : "+x"(a) : "x"(b));
    return a;
}
#elif defined(__aarch64__)
float compute(float a, Sign sign, float b) {
    if (sign == Sign::plus) asm volatile("fadd %s0, %s0, %s1" : "+w"(a) : "w"(b));
    if (sign == Sign::minus) asm volatile("fsub %s0, %s0, %s1" : "+w"(a) : "w"(b));
    if (sign == Sign::times) asm volatile("fmul %s0, %s0, %s1" : "+w"(a) : "w"(b));
    return a;
}
double compute(double a, Sign sign, double b) {
    if (sign == Sign::plus) asm volatile("fadd %d0, %d0, %d1" : "+w"(a) : "w"(b));
    if (sign == Sign::minus) asm volatile("fsub %d0, %d0, %d1" : "+w"(a) : "w"(b));
    if (sign == Sign::times) asm volatile("fmul %d0, %d0, %d1" : "+w"(a) : "w"(b));
    return a;
}
#endif

// Two NaNs: the 80-bit unit takes the one with the larger significand, whatever the order; the
// library for 128 bits takes the first, so it is called in order.
long double compute(long double a, Sign sign, long double b) {
#if LDBL_MANT_DIG == 113
    if (sign == Sign::plus) return __addtf3(a, b);
    if (sign == Sign::times) return __multf3(a, b);
#endif
    volatile long double x = a, y = b;
    if (sign == Sign::plus) return x + y;
    if (sign == Sign::minus) return x - y;
    return x * y;
}

// MPI_DOUBLE's MAX and MIN, and the smaller of two indices that are floats, are x86's instructions,
// which under DAZ return zero for a subnormal number (a processor's; an emulator's may not).
float as_returned(float x) {
#if defined(__x86_64__)
    asm volatile("minss %0, %0" : "+x"(x));
#endif
    return x;
}
double as_returned(double x) {
#if defined(__x86_64__)
    asm volatile("minsd %0, %0" : "+x"(x));
#endif
    return x;
}

// ---- floats of 16 bits -----------------------------------------------------------------

struct Small {
    int mantissa_bits;
    int lowest_exponent;  // of a normal number
    int highest_exponent;
    enum class Rounding { by_mode, half_to_even, half_up } rounding;
};
constexpr Small binary16{10, -14, 15, Small::Rounding::by_mode};
constexpr Small bfloat16{7, -126, 127, Small::Rounding::half_to_even};
constexpr Small bfloat16_half_up{7, -126, 127, Small::Rounding::half_up};

uint16_t infinity_of(Small format) {
    return static_cast<uint16_t>((format.highest_exponent - format.lowest_exponent + 2)
                                 << format.mantissa_bits);
}

bool is_nan(Small format, uint16_t bits) { return (bits & 0x7FFF) > infinity_of(format); }

double decode(Small format, uint16_t bits) {
    const int magnitude = bits & 0x7FFF;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (magnitude == infinity_of(format)) return sign * INFINITY;
    const int field = magnitude >> format.mantissa_bits;
    const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
    const int whole = field == 0 ? mantissa : mantissa + (1 << format.mantissa_bits);
    const int exponent = (field == 0 ? 1 : field) - 1 + format.lowest_exponent;
    return sign * std::ldexp(whole, exponent - format.mantissa_bits);
}

// Of units of the last place; `value` has its sign, by which the mode rounds.
double round_units(Small format, double value) {
    switch (format.rounding) {
        case Small::Rounding::by_mode:
            return std::nearbyint(value);
        case Small::Rounding::half_to_even:
            return std::fabs(std::remainder(value, 1.0)) == 0.5 ? 2 * std::round(value / 2)
                                                                : std::round(value);
        case Small::Rounding::half_up:
            return std::round(value);
    }
    return value;
}

// Does a number beyond the largest one become that, not infinity?
bool stays_finite(Small format, bool negative) {
    if (format.rounding != Small::Rounding::by_mode) return false;
    const int mode = std::fegetround();
    return mode == FE_TOWARDZERO || mode == (negative ? FE_UPWARD : FE_DOWNWARD);
}

uint16_t encode(Small format, double value) {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | infinity_of(format));
    int exponent = magnitude == 0 ? format.lowest_exponent : std::ilogb(magnitude);
    if (exponent < format.lowest_exponent) exponent = format.lowest_exponent;
    const double exact = std::ldexp(value, format.mantissa_bits - exponent);
    const auto units = static_cast<int64_t>(std::fabs(round_units(format, exact)));
    // A carry out of the mantissa raises the exponent by itself.
    const int64_t field = exponent - format.lowest_exponent;
    const int64_t bits = (field << format.mantissa_bits) + units;
    const int beyond = infinity_of(format) - (stays_finite(format, sign != 0) ? 1 : 0);
    const bool is_finite = exponent <= format.highest_exponent && bits < infinity_of(format);
    return static_cast<uint16_t>(sign | (is_finite ? static_cast<int>(bits) : beyond));
}

// A quiet NaN's payload is the upper bits of the wider one's.
float widen_nan(Small format, uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t mantissa = bits & ((1U << format.mantissa_bits) - 1);
    // The conversion of binary16 quiets; that of a bfloat16 is no operation at all.
    const uint32_t quiet = format.mantissa_bits == binary16.mantissa_bits ? 0x00400000 : 0;
    return std::bit_cast<float>(sign | 0x7F800000 | quiet |
                                mantissa << (23 - format.mantissa_bits));
}

uint16_t narrow_nan(Small format, float wide) {
    const uint32_t bits = std::bit_cast<uint32_t>(wide);
    const uint32_t mantissa = (bits & 0x007FFFFF) >> (23 - format.mantissa_bits);
    const uint32_t quiet = 1U << (format.mantissa_bits - 1);
    return static_cast<uint16_t>((bits >> 16 & 0x8000) | infinity_of(format) | quiet | mantissa);
}

float widen(Small format, uint16_t bits) {
    return is_nan(format, bits) ? widen_nan(format, bits)
                                : static_cast<float>(decode(format, bits));
}

uint16_t reduce_small(ReduceOp op, Small format, uint16_t a, uint16_t b) {
    const float x = widen(format, a);
    const float y = widen(format, b);
    if (op == ReduceOp::max) return x > y ? a : b;
    if (op == ReduceOp::min) return x < y ? a : b;
    const float result = compute(y, op == ReduceOp::sum ? Sign::plus : Sign::times, x);
    return std::isnan(result) ? narrow_nan(format, result) : encode(format, result);
}

// ---- long double: 10 bytes of 16 -------------------------------------------------------

constexpr size_t long_double_bytes = LDBL_MANT_DIG == 64 ? 10 : 16;

template <>
long double read<long double>(const unsigned char* from) {
    long double value = 0;
    std::memcpy(&value, from, long_double_bytes);
    return value;
}

template <>
void write<long double>(long double value, unsigned char* to) {
    std::memcpy(to, &value, long_double_bytes);
}

}  // namespace
}  // namespace twin
