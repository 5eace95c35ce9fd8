// SPDX-License-Identifier: BSD-3-Clause
// Loops over blocks of one short length, wherever they lie, to and from a dense stream. Inside
// src/kernels only; baseline code, so no intrinsics.
//
// One store a cycle is what most CPUs have. So packing gathers blocks of 4, 8, 12 and 24 bytes in
// registers of 16 bytes, by loads of one element each. Unpacking takes a store for each block
// whatever is loaded at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vecmpi::kernels {

// Blocks at a distance. places[i] is block i from the current one.
template <class Char>
struct PlacesAtDistance {
    Char* first;
    ptrdiff_t stride;
    Char* operator[](size_t i) const noexcept { return first + static_cast<ptrdiff_t>(i) * stride; }
    void advance(size_t blocks) noexcept { first += static_cast<ptrdiff_t>(blocks) * stride; }
};

// Blocks at offsets of a table.
template <class Char>
struct PlacesOfTable {
    Char* memory;
    const int64_t* offsets;
    Char* operator[](size_t i) const noexcept { return memory + offsets[i]; }
    void advance(size_t blocks) noexcept { offsets += blocks; }
};

using Words = uint64_t __attribute__((vector_size(16)));
using HalfWords = uint32_t __attribute__((vector_size(16)));

template <class T>
inline T load_as(const char* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
template <class T>
inline void store_at(char* to, T value) noexcept {
    std::memcpy(to, &value, sizeof value);
}
inline uint64_t word(const char* from) noexcept { return load_as<uint64_t>(from); }
inline uint32_t half(const char* from) noexcept { return load_as<uint32_t>(from); }
inline Words two_words(const char* low, const char* high) noexcept {
    return Words{word(low), word(high)};
}
inline uint64_t two_halves(const char* low, const char* high) noexcept {
    const HalfWords both = {half(low), half(high), 0, 0};
    return reinterpret_cast<Words>(both)[0];
}

// A loop takes as many at once as pay: the rest of a few blocks is a loop of its own.
template <size_t Bytes>
constexpr size_t unrolled = Bytes <= 16   ? 4
                            : Bytes <= 32 ? 2
                                          : 1;

// Blocks that are gathered in registers, from places[0] on; `blocks` of them fill whole ones.
template <size_t Bytes>
struct Gathered {
    static constexpr size_t blocks = unrolled<Bytes>;
    template <class Places>
    static void pack(char* to, const Places& places) noexcept {
        for (size_t i = 0; i < blocks; ++i) std::memcpy(to + i * Bytes, places[i], Bytes);
    }
};
template <>
struct Gathered<4> {
    static constexpr size_t blocks = 4;
    template <class Places>
    static void pack(char* to, const Places& places) noexcept {
        store_at(to, HalfWords{half(places[0]), half(places[1]), half(places[2]), half(places[3])});
    }
};
template <>
struct Gathered<8> {
    static constexpr size_t blocks = 4;
    template <class Places>
    static void pack(char* to, const Places& places) noexcept {
        store_at(to, two_words(places[0], places[1]));
        store_at(to + 16, two_words(places[2], places[3]));
    }
};
template <>
struct Gathered<12> {
    static constexpr size_t blocks = 4;
    template <class Places>
    static void pack(char* to, const Places& places) noexcept {
        const char *const a = places[0], *const b = places[1], *const c = places[2],
                          *const d = places[3];
        store_at(to, Words{word(a), two_halves(a + 8, b)});
        store_at(to + 16, two_words(b + 4, c));
        store_at(to + 32, Words{two_halves(c + 8, d), word(d + 4)});
    }
};
template <>
struct Gathered<24> {
    static constexpr size_t blocks = 2;
    template <class Places>
    static void pack(char* to, const Places& places) noexcept {
        const char *const a = places[0], *const b = places[1];
        store_at(to, load_as<Words>(a));
        store_at(to + 16, two_words(a + 16, b));
        store_at(to + 32, load_as<Words>(b + 8));
    }
};

template <size_t Bytes, class Places>
inline void pack_fixed(char* to, Places places, size_t count) noexcept {
    constexpr size_t blocks = Gathered<Bytes>::blocks;
    for (; count >= blocks; count -= blocks) {
        Gathered<Bytes>::pack(to, places);
        places.advance(blocks);
        to += blocks * Bytes;
    }
    for (; count != 0; --count) {
        std::memcpy(to, places[0], Bytes);
        places.advance(1);
        to += Bytes;
    }
}

// From places to places: into memory, and where the stream is not dense.
template <size_t Bytes, class To, class From>
inline void copy_fixed(To to, From from, size_t count) noexcept {
    constexpr size_t blocks = unrolled<Bytes>;
    for (; count >= blocks; count -= blocks)
        for (size_t i = 0; i < blocks; ++i) {
            std::memcpy(to[0], from[0], Bytes);
            to.advance(1);
            from.advance(1);
        }
    for (; count != 0; --count) {
        std::memcpy(to[0], from[0], Bytes);
        to.advance(1);
        from.advance(1);
    }
}

}  // namespace vecmpi::kernels
