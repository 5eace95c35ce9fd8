// SPDX-License-Identifier: BSD-3-Clause
// Permutations of the bytes of a register: AVX-512 VBMI, which not every CPU with AVX-512 has. In
// its own intrinsics, since Highway 1.0 has no such permutation of a whole register.
#include "blocks.hpp"
#include "cpu.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

namespace vecmpi::kernels {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")
namespace N_AVX3 {
namespace {

inline __mmask64 first_bytes(size_t bytes) noexcept {
    return ~uint64_t{0} >> (register_bytes - bytes);
}

template <size_t lines>
void pack_groups(const Permutation& tables, char* packed, size_t packed_step, char* memory,
                 int64_t memory_step, size_t groups) noexcept {
    __m512i index[lines];
    __mmask64 mask[lines];
    for (size_t line = 0; line < lines; ++line) {
        index[line] = _mm512_load_si512(tables.pack[line].index);
        mask[line] = tables.pack[line].mask;
    }
    const char* from = memory + tables.window_offset;
    char* to = packed + tables.packed_offset;
    const __mmask64 stored = first_bytes(tables.packed_bytes);
    for (; groups != 0; --groups) {
        __m512i out = _mm512_maskz_permutexvar_epi8(mask[0], index[0], _mm512_loadu_si512(from));
        for (size_t line = 1; line < lines; ++line)
            out = _mm512_mask_permutexvar_epi8(out, mask[line], index[line],
                                               _mm512_loadu_si512(from + line * register_bytes));
        _mm512_mask_storeu_epi8(to, stored, out);
        from += memory_step;
        to += packed_step;
    }
}

template <size_t lines>
void unpack_groups(const Permutation& tables, char* packed, size_t packed_step, char* memory,
                   int64_t memory_step, size_t groups) noexcept {
    __m512i index[lines];
    __mmask64 mask[lines];
    for (size_t line = 0; line < lines; ++line) {
        index[line] = _mm512_load_si512(tables.unpack[line].index);
        mask[line] = tables.unpack[line].mask;
    }
    const char* from = packed + tables.packed_offset;
    char* to = memory + tables.window_offset;
    const __mmask64 loaded = first_bytes(tables.packed_bytes);
    for (; groups != 0; --groups) {
        const __m512i in = _mm512_maskz_loadu_epi8(loaded, from);
        for (size_t line = 0; line < lines; ++line)
            _mm512_mask_storeu_epi8(to + line * register_bytes, mask[line],
                                    _mm512_permutexvar_epi8(index[line], in));
        from += packed_step;
        to += memory_step;
    }
}

void copy_part(Direction direction, const Permutation& tables, char* packed, char* memory,
               size_t bytes) noexcept {
    char* const in_stream = packed + tables.packed_offset;
    char* in_memory = memory + tables.window_offset;
    const __mmask64 streamed = first_bytes(bytes);
    const __m512i end = _mm512_set1_epi8(static_cast<char>(bytes));
    __m512i stream = _mm512_setzero_si512();
    if (direction == Direction::unpack) stream = _mm512_maskz_loadu_epi8(streamed, in_stream);
    for (size_t line = 0; line < tables.lines; ++line, in_memory += register_bytes) {
        const ByteChoice& unpacking = tables.unpack[line];
        const __m512i index = _mm512_load_si512(unpacking.index);
        const __mmask64 blocks = _mm512_mask_cmplt_epu8_mask(unpacking.mask, index, end);
        // An empty mask costs a microcode assist on a page that was never touched.
        if (blocks == 0) continue;
        if (direction == Direction::unpack) {
            _mm512_mask_storeu_epi8(in_memory, blocks, _mm512_permutexvar_epi8(index, stream));
        } else {
            const ByteChoice& packing = tables.pack[line];
            stream =
                _mm512_mask_permutexvar_epi8(stream, packing.mask, _mm512_load_si512(packing.index),
                                             _mm512_maskz_loadu_epi8(blocks, in_memory));
        }
    }
    if (direction == Direction::pack) _mm512_mask_storeu_epi8(in_stream, streamed, stream);
}

constexpr CopyGroups packs[most_lines] = {pack_groups<1>, pack_groups<2>, pack_groups<3>,
                                          pack_groups<4>, pack_groups<5>, pack_groups<6>,
                                          pack_groups<7>, pack_groups<8>};
constexpr CopyGroups unpacks[most_lines] = {unpack_groups<1>, unpack_groups<2>, unpack_groups<3>,
                                            unpack_groups<4>, unpack_groups<5>, unpack_groups<6>,
                                            unpack_groups<7>, unpack_groups<8>};

}  // namespace
}  // namespace N_AVX3
#pragma GCC pop_options

CopyGroups copy_groups_avx512(Direction direction, size_t lines) noexcept {
    return (direction == Direction::pack ? N_AVX3::packs : N_AVX3::unpacks)[lines - 1];
}

bool bytes_can_be_permuted(Isa isa) noexcept { return isa == Isa::avx512 && has_vbmi(); }

void copy_group_part_avx512(Direction direction, const Permutation& tables, char* packed,
                            char* memory, size_t bytes) noexcept {
    N_AVX3::copy_part(direction, tables, packed, memory, bytes);
}

}  // namespace vecmpi::kernels

#else

namespace vecmpi::kernels {

bool bytes_can_be_permuted(Isa) noexcept { return false; }
CopyGroups copy_groups_avx512(Direction, size_t) noexcept { return nullptr; }
void copy_group_part_avx512(Direction, const Permutation&, char*, char*, size_t) noexcept {}

}  // namespace vecmpi::kernels
#endif
