// SPDX-License-Identifier: BSD-3-Clause
// Long doubles that an op only compares, or only asks for zero. They are copied and made as
// integers: x86's 80-bit unit takes 4 ns for two loads and a store, and 2 ns where only other units
// store.
#pragma once

#include <cfloat>
#include <cstdint>

#include "scalar_elements.hpp"

namespace vecmpi::kernels {

#if LDBL_MANT_DIG == 64

constexpr size_t extended_bytes = 10;

// One that stays where it is.
struct LongDoubleAt {
    const unsigned char* at;
    long double value() const noexcept { return LongDouble::load(at); }
};
// Quiet, as MPICH's: a NaN raises no exception.
inline bool operator<(LongDoubleAt a, LongDoubleAt b) noexcept {
    return __builtin_isless(a.value(), b.value());
}
inline bool operator>(LongDoubleAt a, LongDoubleAt b) noexcept { return b < a; }

struct ComparedLongDouble : LongDouble {
    using Value = LongDoubleAt;
    static Value load(const unsigned char* from) noexcept { return {from}; }
    static void store(Value value, unsigned char* to) noexcept {
        unsigned char bytes[extended_bytes];  // the two may be the same place
        std::memcpy(bytes, value.at, extended_bytes);
        std::memcpy(to, bytes, extended_bytes);
    }
};

// 64 bits of mantissa with its leading one, then exponent and sign.
struct ExtendedBits {
    uint64_t mantissa;
    uint64_t sign_exponent;
};

struct LongDoubleBits : LongDouble {
    using Value = ExtendedBits;
    static Value load(const unsigned char* from) noexcept {
        return {Plain<uint64_t>::load(from), Plain<uint16_t>::load(from + 8)};
    }
    static void store(Value value, unsigned char* to) noexcept {
        Plain<uint64_t>::store(value.mantissa, to);
        Plain<uint16_t>::store(static_cast<uint16_t>(value.sign_exponent), to + 8);
    }
};

// 1 where exactly one of them is not zero, else 0. What the unit refuses is not zero to it.
struct ExtendedXor {
    static bool is_true(ExtendedBits a) noexcept {
        return (a.mantissa | (a.sign_exponent & 0x7fff)) != 0;
    }
    ExtendedBits operator()(ExtendedBits a, ExtendedBits b) const noexcept {
        const uint64_t one = is_true(a) != is_true(b);
        return {one << 63, -one & 0x3fff};
    }
};

#else

using ComparedLongDouble = LongDouble;

#endif

}  // namespace vecmpi::kernels
