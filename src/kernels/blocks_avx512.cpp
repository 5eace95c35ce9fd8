// SPDX-License-Identifier: BSD-3-Clause
// Scattered blocks with AVX-512, in its own intrinsics: Highway 1.0 has no masks by byte. Elsewhere
// than on x86-64 these functions offer nothing.
#include <cstring>

#include "blocks.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

namespace vecmpi::kernels {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")
namespace N_AVX3 {
namespace {

// ---- blocks of one length --------------------------------------------------------------------

inline void move_register(char* to, const char* from) noexcept {
    _mm512_storeu_si512(to, _mm512_loadu_si512(from));
}

// 33 to 64 bytes: the first and the last half register, which may overlap.
void copy_medium(const StridedCopy& copy) noexcept {
    char* to = copy.to;
    const char* from = copy.from;
    const size_t last = copy.bytes - 32;
#pragma GCC unroll 2
    for (size_t i = copy.count; i != 0; --i) {
        const __m256i head = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        const __m256i tail = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + last));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), head);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + last), tail);
        to += copy.to_stride;
        from += copy.from_stride;
    }
}

// 128 bytes or more: the first and the last register as they lie, those between aligned where they
// are stored. 1 KiB out of 2 KiB, GB/s with this and with memcpy: 68 and 70 in the first-level
// cache; 31 and 28 within 32 KiB, 31 and 22 into blocks.
void copy_very_long(const StridedCopy& copy) noexcept {
    char* to = copy.to;
    const char* from = copy.from;
    const size_t last = copy.bytes - register_bytes;
    for (size_t i = copy.count; i != 0; --i) {
        const __m512i tail = _mm512_loadu_si512(from + last);
        move_register(to, from);
        const size_t first = register_bytes - reinterpret_cast<uintptr_t>(to) % register_bytes;
        for (size_t at = first; at < last; at += register_bytes) move_register(to + at, from + at);
        _mm512_storeu_si512(to + last, tail);
        to += copy.to_stride;
        from += copy.from_stride;
    }
}

// ---- blocks at offsets of a table --------------------------------------------------------------

// The last few are moved one by one. GCC 12 may store half a register under a mask by
// VEXTRACTI32X8, which faults on what the mask leaves out.
template <bool packing, size_t Bytes>
void copy_rest(char* packed, char* memory, const int64_t* offsets, size_t from,
               size_t count) noexcept {
    for (size_t i = from; i < count; ++i) {
        char* const in_stream = packed + Bytes * i;
        char* const in_memory = memory + offsets[i];
        std::memcpy(packing ? in_stream : in_memory, packing ? in_memory : in_stream, Bytes);
    }
}

template <bool packing>
void gather_words(char* packed, char* memory, const int64_t* offsets, size_t count) noexcept {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m512i at = _mm512_loadu_si512(offsets + i);
        if constexpr (packing)
            _mm512_storeu_si512(packed + 8 * i, _mm512_i64gather_epi64(at, memory, 1));
        else
            _mm512_i64scatter_epi64(memory, at, _mm512_loadu_si512(packed + 8 * i), 1);
    }
    copy_rest<packing, 8>(packed, memory, offsets, i, count);
}

template <bool packing>
void gather_halves(char* packed, char* memory, const int64_t* offsets, size_t count) noexcept {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m512i at = _mm512_loadu_si512(offsets + i);
        auto* const in_stream = reinterpret_cast<__m256i*>(packed + 4 * i);
        if constexpr (packing)
            _mm256_storeu_si256(in_stream, _mm512_i64gather_epi32(at, memory, 1));
        else
            _mm512_i64scatter_epi32(memory, at, _mm256_loadu_si256(in_stream), 1);
    }
    copy_rest<packing, 4>(packed, memory, offsets, i, count);
}

// A block of up to a register in one masked move; longer ones register by register.
inline void copy_masked(char* to, const char* from, size_t bytes) noexcept {
    while (bytes > register_bytes) {
        move_register(to, from);
        to += register_bytes;
        from += register_bytes;
        bytes -= register_bytes;
    }
    const __mmask64 mask = bytes == 0 ? 0 : ~uint64_t{0} >> (register_bytes - bytes);
    _mm512_mask_storeu_epi8(to, mask, _mm512_maskz_loadu_epi8(mask, from));
}

template <bool packing>
void copy_short_blocks(char* packed, char* memory, const int64_t* offsets, const int64_t* starts,
                       size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) {
        char* const in_stream = packed + (starts[i] - starts[0]);
        char* const in_memory = memory + offsets[i];
        const auto bytes = static_cast<size_t>(starts[i + 1] - starts[i]);
        copy_masked(packing ? in_stream : in_memory, packing ? in_memory : in_stream, bytes);
    }
}

// ---- transposition -----------------------------------------------------------------------------

// 8 rows of 8 words.
inline void transpose_words(__m512i (&r)[8]) noexcept {
    __m512i t[8], u[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; ++k) {
            u[i + k] = _mm512_shuffle_i64x2(t[i + k], t[i + k + 2], 0x88);
            u[i + k + 2] = _mm512_shuffle_i64x2(t[i + k], t[i + k + 2], 0xdd);
        }
    for (int k = 0; k < 4; ++k) {
        r[k] = _mm512_shuffle_i64x2(u[k], u[k + 4], 0x88);
        r[k + 4] = _mm512_shuffle_i64x2(u[k], u[k + 4], 0xdd);
    }
}

// 16 rows of 16 halves.
inline void transpose_halves(__m512i (&r)[16]) noexcept {
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    // r[4 g + c] has column c of each 128 bits, rows 4 g to 4 g + 3.
    for (int c = 0; c < 4; ++c) {
        t[c] = _mm512_shuffle_i32x4(r[c], r[4 + c], 0x88);
        t[4 + c] = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0x88);
        t[8 + c] = _mm512_shuffle_i32x4(r[c], r[4 + c], 0xdd);
        t[12 + c] = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0xdd);
    }
    for (int c = 0; c < 4; ++c) {
        r[c] = _mm512_shuffle_i32x4(t[c], t[4 + c], 0x88);
        r[8 + c] = _mm512_shuffle_i32x4(t[c], t[4 + c], 0xdd);
        r[4 + c] = _mm512_shuffle_i32x4(t[8 + c], t[12 + c], 0x88);
        r[12 + c] = _mm512_shuffle_i32x4(t[8 + c], t[12 + c], 0xdd);
    }
}

template <int side>
void transpose_tiles(const Tiles& where) noexcept {
    Tiles tiles = where;  // what is stored through a char pointer could be the caller's
    for (; tiles.count != 0; --tiles.count) {
        __m512i rows[side];
        for (int r = 0; r < side; ++r)
            rows[r] = _mm512_loadu_si512(tiles.from + r * tiles.from_stride);
        if constexpr (side == 8)
            transpose_words(rows);
        else
            transpose_halves(rows);
        for (int r = 0; r < side; ++r) _mm512_storeu_si512(tiles.to + r * tiles.to_stride, rows[r]);
        tiles.to += tiles.to_step;
        tiles.from += tiles.from_step;
    }
}

}  // namespace
}  // namespace N_AVX3
#pragma GCC pop_options

// ---- what is chosen at run time --------------------------------------------------------------

CopyStrided strided_copy_avx512(size_t bytes) noexcept {
    constexpr size_t longest = 4096;  // above, a call of copy_bytes costs nothing
    if (bytes <= 32 || bytes > longest) return nullptr;
    if (bytes <= register_bytes) return N_AVX3::copy_medium;
    return bytes < 2 * register_bytes ? strided_copy_avx2(bytes) : N_AVX3::copy_very_long;
}

bool can_gather(size_t bytes, Isa isa) noexcept {
    return isa == Isa::avx512 && (bytes == 4 || bytes == 8);
}

void gather_table_avx512(Direction direction, char* packed, char* memory, const int64_t* offsets,
                         size_t bytes, size_t count) noexcept {
    const bool packing = direction == Direction::pack;
    using Gather = void (*)(char*, char*, const int64_t*, size_t) noexcept;
    const Gather words = packing ? N_AVX3::gather_words<true> : N_AVX3::gather_words<false>;
    const Gather halves = packing ? N_AVX3::gather_halves<true> : N_AVX3::gather_halves<false>;
    (bytes == 8 ? words : halves)(packed, memory, offsets, count);
}

void copy_short_blocks_avx512(Direction direction, char* packed, char* memory,
                              const int64_t* offsets, const int64_t* starts,
                              size_t count) noexcept {
    if (direction == Direction::pack)
        N_AVX3::copy_short_blocks<true>(packed, memory, offsets, starts, count);
    else
        N_AVX3::copy_short_blocks<false>(packed, memory, offsets, starts, count);
}

Transposer transposer_avx512(size_t bytes) noexcept {
    if (bytes == 4) return {N_AVX3::transpose_tiles<16>, register_bytes};
    if (bytes == 8) return {N_AVX3::transpose_tiles<8>, register_bytes};
    return {};
}

}  // namespace vecmpi::kernels

#else

namespace vecmpi::kernels {

bool can_gather(size_t, Isa) noexcept { return false; }
CopyStrided strided_copy_avx512(size_t) noexcept { return nullptr; }
void gather_table_avx512(Direction, char*, char*, const int64_t*, size_t, size_t) noexcept {}
void copy_short_blocks_avx512(Direction, char*, char*, const int64_t*, const int64_t*,
                              size_t) noexcept {}
Transposer transposer_avx512(size_t) noexcept { return {}; }

}  // namespace vecmpi::kernels
#endif
