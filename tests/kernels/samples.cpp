// SPDX-License-Identifier: BSD-3-Clause
// See samples.hpp.
#include "samples.hpp"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace samples {
namespace {

using twin::Kind;

constexpr uint64_t specials_f64[] = {
    0x0000000000000000, 0x8000000000000000,                      // zeros
    0x7FF0000000000000, 0xFFF0000000000000,                      // infinities
    0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000ABCDEF,  // quiet NaNs
    0xFFFFFFFFFFFFFFFF, 0x7FF0000000000001, 0xFFF4000000001234,  // and signalling ones
    0x0000000000000001, 0x8000000000000001, 0x000FFFFFFFFFFFFF,  // subnormal
    0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF,  // least normal, largest
    0x3FF0000000000000, 0xBFF0000000000000, 0x3FF0000000000001, 0x3CA0000000000000};
constexpr uint32_t specials_f32[] = {0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                     0xFFC00000, 0x7FC0ABCD, 0xFFFFFFFF, 0x7F800001, 0xFFA01234,
                                     0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF,
                                     0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x3F800001, 0x33800000};
constexpr uint16_t specials_f16[] = {0x0000, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7E5A,
                                     0xFFFF, 0x7C01, 0xFD12, 0x0001, 0x8001, 0x03FF, 0x0400,
                                     0x7BFF, 0xFBFF, 0x3C00, 0xBC00, 0x3C01, 0x1000};
constexpr uint16_t specials_bf16[] = {0x0000, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0xFFC0, 0x7FDA,
                                      0xFFFF, 0x7F81, 0xFFA3, 0x0001, 0x8001, 0x007F, 0x0080,
                                      0x7F7F, 0xFF7F, 0x3F80, 0xBF80, 0x3F81, 0x3B80};

template <class T, size_t n>
T one_of(Random& random, const T (&choices)[n]) {
    return choices[random() % n];
}

// Exponents near 0, so that sums round and products do not overflow.
double moderate(Random& random) {
    const double mantissa = static_cast<double>(static_cast<int64_t>(random()));
    return std::ldexp(mantissa, static_cast<int>(random() % 12) - 68);
}

void put_integer(Random& random, size_t bytes, bool small, unsigned char* to) {
    uint64_t value = random();
    const uint64_t top = uint64_t{1} << (8 * bytes - 1);
    const uint64_t extremes[] = {0, 1, ~uint64_t{0}, top, top - 1, top + 1, ~uint64_t{1}, 2};
    const unsigned kind = random() % 8;
    if (small)
        value = value % 5 - 2;
    else if (kind < 2)
        value = extremes[random() % 8];
    else if (kind == 2)
        value = 0;
    std::memcpy(to, &value, bytes);
}

void put_long_double(Random& random, unsigned kind, unsigned char* to) {
    long double value = static_cast<long double>(moderate(random)) * (1 + LDBL_EPSILON);
    const long double specials[] = {0.0L,
                                    -0.0L,
                                    INFINITY,
                                    -INFINITY,
                                    LDBL_MAX,
                                    -LDBL_MAX,
                                    LDBL_MIN,
                                    std::numeric_limits<long double>::denorm_min(),
                                    1.0L,
                                    -1.0L,
                                    std::nanl(""),
                                    -std::nanl("0x1234"),
                                    std::nanl("0x777"),
                                    std::numeric_limits<long double>::signaling_NaN()};
    if (kind < 3) {
        // By bytes: an assignment of a signalling NaN may quiet it.
        std::memcpy(to, &specials[random() % 14], LDBL_MANT_DIG == 64 ? 10 : 16);
        return;
    }
    if (kind == 3 && LDBL_MANT_DIG == 64) {  // encodings that no operation gives, and their likes
        const uint16_t exponents[] = {0, 1, 0x3fff, 0x7ffe, 0x7fff};
        const uint64_t mantissas[] = {0, 1, uint64_t{1} << 62, uint64_t{1} << 63, random()};
        const auto sign_exponent =
            static_cast<uint16_t>(exponents[random() % 5] | (random() % 2 ? 0x8000 : 0));
        std::memcpy(to, &mantissas[random() % 5], 8);
        std::memcpy(to + 8, &sign_exponent, 2);
        return;
    }
    std::memcpy(to, &value, LDBL_MANT_DIG == 64 ? 10 : 16);
}

template <class T>
void put(T value, unsigned char* to) {
    std::memcpy(to, &value, sizeof value);
}

void put_float(Random& random, Kind kind, bool small, unsigned char* to) {
    const unsigned choice = random() % 8;  // 0 to 2 special, 3 random bits, else moderate
    const uint64_t bits = random();
    const double tie = static_cast<double>(random() % 5) - 2;
    const double value = small ? tie : moderate(random);
    const bool special = choice < 3;
    const bool any = choice == 3 && !small;
    switch (kind) {
        case Kind::f16:
            return put<uint16_t>(special ? one_of(random, specials_f16) : bits & 0xFFFF, to);
        case Kind::bf16:
            return put<uint16_t>(special ? one_of(random, specials_bf16)
                                 : any   ? bits & 0xFFFF
                                         : std::bit_cast<uint32_t>(float(value)) >> 16,
                                 to);
        case Kind::f32:
            return put<uint32_t>(special ? one_of(random, specials_f32)
                                 : any   ? static_cast<uint32_t>(bits)
                                         : std::bit_cast<uint32_t>(float(value)),
                                 to);
        case Kind::f64:
            return put<uint64_t>(special ? one_of(random, specials_f64)
                                 : any   ? bits
                                         : std::bit_cast<uint64_t>(value),
                                 to);
        default:
            return put_long_double(random, choice, to);
    }
}

void put_part(Random& random, Kind kind, bool small, unsigned char* to) {
    if (kind <= Kind::u64)
        put_integer(random, size_t{1} << static_cast<unsigned>(kind) / 2, small, to);
    else
        put_float(random, kind, small, to);
}

}  // namespace

std::vector<unsigned char> draw(Random& random, vecmpi::kernels::ElementType type, size_t count) {
    const size_t bytes = twin::bytes_of(type);
    const std::vector<twin::Part> parts = twin::parts_of(type);
    std::vector<unsigned char> elements(count * bytes);
    for (unsigned char& byte : elements) byte = static_cast<unsigned char>(random());
    for (size_t i = 0; i != count; ++i) {
        const bool small = twin::is_pair(type) && random() % 2 == 0;
        for (const twin::Part& part : parts)
            put_part(random, part.kind, small, &elements[i * bytes + part.at]);
    }
    return elements;
}

}  // namespace samples
