// SPDX-License-Identifier: BSD-3-Clause
// How scalar kernels load and store an element, and where its padding is. Nothing is assumed to be
// aligned.
#pragma once

#include <bit>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vecmpi::kernels {

template <class T>
struct Plain {
    using Value = T;
    static constexpr size_t bytes = sizeof(T);
    static constexpr bool has_padding = false;
    static Value load(const unsigned char* from) noexcept {
        Value value;
        std::memcpy(&value, from, sizeof value);
        return value;
    }
    static void store(Value value, unsigned char* to) noexcept {
        std::memcpy(to, &value, sizeof value);
    }
    static void copy_padding(const unsigned char*, unsigned char*) noexcept {}
};

// An 80-bit float occupies 16 bytes, of which a load or a store touches 10.
struct LongDouble {
    using Value = long double;
    using Unaligned __attribute__((aligned(1), may_alias)) = long double;
    static constexpr size_t bytes = sizeof(long double);
    static constexpr bool has_padding = LDBL_MANT_DIG == 64;
    static Value load(const unsigned char* from) noexcept {
        return *reinterpret_cast<const Unaligned*>(from);
    }
    static void store(Value value, unsigned char* to) noexcept {
        *reinterpret_cast<Unaligned*>(to) = value;
    }
    // After the store, which to the compiler writes all 16.
    static void copy_padding(const unsigned char* from, unsigned char* to) noexcept {
        constexpr size_t data_bytes = 10;
        if constexpr (has_padding)
            std::memcpy(to + data_bytes, from + data_bytes, bytes - data_bytes);
    }
};

template <class T>
struct ReIm {
    T re, im;
};

template <class Part>
struct Complex {
    using Value = ReIm<typename Part::Value>;
    static constexpr size_t bytes = 2 * Part::bytes;
    static constexpr bool has_padding = Part::has_padding;
    static Value load(const unsigned char* from) noexcept {
        return {Part::load(from), Part::load(from + Part::bytes)};
    }
    static void store(Value value, unsigned char* to) noexcept {
        Part::store(value.re, to);
        Part::store(value.im, to + Part::bytes);
    }
    static void copy_padding(const unsigned char* from, unsigned char* to) noexcept {
        Part::copy_padding(from, to);
        Part::copy_padding(from + Part::bytes, to + Part::bytes);
    }
};

template <class V, class I>
struct ValueIndex {
    V value;
    I index;
};

// The struct {value; index;} as the C compiler lays it out.
template <class V, class I>
struct PairOf {
    using Value = ValueIndex<typename V::Value, typename I::Value>;
    static constexpr size_t index_at = offsetof(Value, index);
    static constexpr size_t bytes = sizeof(Value);
    static constexpr bool has_padding = V::has_padding || V::bytes + I::bytes < bytes;
    static Value load(const unsigned char* from) noexcept {
        return {V::load(from), I::load(from + index_at)};
    }
    static void store(Value value, unsigned char* to) noexcept {
        V::store(value.value, to);
        I::store(value.index, to + index_at);
    }
    static void copy_padding(const unsigned char* from, unsigned char* to) noexcept {
        constexpr size_t index_end = index_at + I::bytes;
        V::copy_padding(from, to);
        std::memcpy(to + V::bytes, from + V::bytes, index_at - V::bytes);
        std::memcpy(to + index_end, from + index_end, bytes - index_end);
    }
};

// IEEE binary16. Rounds by the mode of the thread. It narrows only sums and products of widened
// operands, none of which is subnormal as a float.
struct ScalarFloat16 {
    static float widen(uint16_t half) noexcept;
    static uint16_t narrow(float wide) noexcept;
};

// The upper half of a binary32; rounds to nearest even. It narrows only results of widened
// operands, so the lower half of a NaN is zero.
struct ScalarBFloat16 {
    static float widen(uint16_t half) noexcept;
    static uint16_t narrow(float wide) noexcept;
};

// The same, but a tie rounds away from zero. Neither knows the mode.
struct ScalarBFloat16HalfUp : ScalarBFloat16 {
    static uint16_t narrow(float wide) noexcept;
};

// The bits of a float, for ops that return one of their operands.
struct ScalarFloat32 {
    static float widen(uint32_t bits) noexcept { return std::bit_cast<float>(bits); }
};
struct ScalarFloat64 {
    static double widen(uint64_t bits) noexcept { return std::bit_cast<double>(bits); }
};

}  // namespace vecmpi::kernels
