// SPDX-License-Identifier: BSD-3-Clause
// The twin's arithmetic on single numbers. Integers are computed in 128 bits and cut; 16-bit floats
// in double and rounded by division; NaNs are chosen by hand, so that no compiler can choose
// otherwise. Only for twin.cpp.
#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "twin.hpp"

namespace twin {
namespace {

using vecmpi::ReduceOp;

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

// ---- floats: NaNs ----------------------------------------------------------------------

template <class T>
struct Bits;
template <>
struct Bits<float> {
    using Word = uint32_t;
    static constexpr Word quiet = 0x00400000;
};
template <>
struct Bits<double> {
    using Word = uint64_t;
    static constexpr Word quiet = 0x0008000000000000;
};

template <class T>
bool is_signalling(T x) {
    return std::isnan(x) && (std::bit_cast<typename Bits<T>::Word>(x) & Bits<T>::quiet) == 0;
}

template <class T>
T quieted(T x) {
    return std::bit_cast<T>(std::bit_cast<typename Bits<T>::Word>(x) | Bits<T>::quiet);
}

// The NaN that the hardware makes of two operands at least one of which is one.
template <class T>
T surviving_nan(T a, T b) {
#if defined(__aarch64__)
    if (is_signalling(a)) return quieted(a);
    if (is_signalling(b)) return quieted(b);
#endif
    return std::isnan(a) ? quieted(a) : quieted(b);
}

enum class Sign : unsigned char { plus, minus, times };

template <class T>
T compute(T a, Sign sign, T b) {
    if (std::isnan(a) || std::isnan(b)) return surviving_nan(a, b);
    volatile T x = a, y = b;
    if (sign == Sign::plus) return x + y;
    if (sign == Sign::minus) return x - y;
    return x * y;
}

// Two NaNs: the 80-bit unit takes the one with the larger significand, whatever the order.
long double compute(long double a, Sign sign, long double b) {
    volatile long double x = a, y = b;
    if (sign == Sign::plus) return x + y;
    if (sign == Sign::minus) return x - y;
    return x * y;
}

// MPI_DOUBLE's MAX and MIN, and the smaller of two indices that are floats, are x86's instructions,
// which under DAZ see and return zero for a subnormal number. By bits: a comparison would not see
// it either.
template <class T>
T as_seen(T x) {
#if defined(__x86_64__)
    constexpr unsigned daz = 0x0040;
    constexpr auto exponent = std::bit_cast<typename Bits<T>::Word>(static_cast<T>(INFINITY));
    const auto bits = std::bit_cast<typename Bits<T>::Word>(x);
    if ((_mm_getcsr() & daz) != 0 && (bits & exponent) == 0) return std::copysign(T{0}, x);
#endif
    return x;
}

// ---- floats of 16 bits -----------------------------------------------------------------

struct Small {
    int mantissa_bits;
    int lowest_exponent;  // of a normal number
    int highest_exponent;
};
constexpr Small binary16{10, -14, 15};
constexpr Small bfloat16{7, -126, 127};

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

uint16_t encode(Small format, double value) {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | infinity_of(format));
    int exponent = magnitude == 0 ? format.lowest_exponent : std::ilogb(magnitude);
    if (exponent < format.lowest_exponent) exponent = format.lowest_exponent;
    // Units of the last place; the division is exact, nearbyint rounds to even.
    const auto units = static_cast<int64_t>(
        std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent)));
    // A carry out of the mantissa raises the exponent by itself.
    const int64_t field = exponent - format.lowest_exponent;
    const int64_t bits = (field << format.mantissa_bits) + units;
    return static_cast<uint16_t>(sign | (bits < infinity_of(format) ? bits : infinity_of(format)));
}

uint16_t surviving_nan(Small format, uint16_t a, uint16_t b) {
    const uint16_t quiet = static_cast<uint16_t>(1 << (format.mantissa_bits - 1));
#if defined(__aarch64__)
    if (is_nan(format, a) && (a & quiet) == 0) return a | quiet;
    if (is_nan(format, b) && (b & quiet) == 0) return b | quiet;
#endif
    return is_nan(format, a) ? a | quiet : b | quiet;
}

uint16_t reduce_small(ReduceOp op, Small format, uint16_t a, uint16_t b) {
    // Of two NaNs that of `in` survives.
    const bool has_nan = is_nan(format, a) || is_nan(format, b);
    const bool is_choice = op == ReduceOp::max || op == ReduceOp::min;
    if (has_nan) return is_choice ? b : surviving_nan(format, b, a);
    const double x = decode(format, a);
    const double y = decode(format, b);
    if (op == ReduceOp::max) return x > y ? a : b;
    if (op == ReduceOp::min) return x < y ? a : b;
    // A bfloat16 goes by way of float; two binary16 are exact there or round the same.
    const Sign sign = op == ReduceOp::sum ? Sign::plus : Sign::times;
    const float result = compute(static_cast<float>(x), sign, static_cast<float>(y));
    if (!std::isnan(result)) return encode(format, result);
    const int negative = std::signbit(result) ? 0x8000 : 0;  // the hardware's own NaN
    return static_cast<uint16_t>(negative | infinity_of(format) | 1 << (format.mantissa_bits - 1));
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
