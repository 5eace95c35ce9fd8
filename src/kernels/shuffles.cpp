// SPDX-License-Identifier: BSD-3-Clause
// Records packed by permutations of 16 bytes (PSHUFB, TBL), and squares of elements transposed in
// registers of 16 bytes. Compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/shuffles.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "blocks.hpp"
#include "loop-inl.hpp"

// SVE's vectors cannot be elements of an array: NEON's code serves there too.
#if VECMPI_VECTOR_TARGET && !HWY_HAVE_SCALABLE
HWY_BEFORE_NAMESPACE();
namespace vecmpi::kernels::HWY_NAMESPACE {
namespace {

template <size_t lines>
void shuffle_lines(const Shuffle& tables, char* packed, size_t packed_step, const char* memory,
                   int64_t memory_step, size_t groups) noexcept {
    const hn::FixedTag<uint8_t, short_register_bytes> d;
    hn::Vec<decltype(d)> index[lines];
    for (size_t line = 0; line < lines; ++line) index[line] = hn::Load(d, tables.index[line]);
    auto* from = reinterpret_cast<const uint8_t*>(memory + tables.window_offset);
    auto* to = reinterpret_cast<uint8_t*>(packed + tables.packed_offset);
    for (; groups != 0; --groups) {
        auto out = hn::TableLookupBytesOr0(hn::LoadU(d, from), index[0]);
        for (size_t line = 1; line < lines; ++line)
            out = hn::Or(out, hn::TableLookupBytesOr0(
                                  hn::LoadU(d, from + line * short_register_bytes), index[line]));
        hn::StoreU(out, d, to);
        from += memory_step;
        to += packed_step;
    }
}

constexpr ShuffleGroups by_lines[most_lines] = {
    shuffle_lines<1>, shuffle_lines<2>, shuffle_lines<3>, shuffle_lines<4>,
    shuffle_lines<5>, shuffle_lines<6>, shuffle_lines<7>, shuffle_lines<8>};

// n rows of n elements. Each round interleaves rows i and i + n / 2 to rows 2 i and 2 i + 1. After
// log2(n) rounds every element is in its place.
template <class T>
void transpose_tiles(const Tiles& where) noexcept {
    constexpr size_t side = short_register_bytes / sizeof(T);
    const hn::FixedTag<T, side> d;
    using Row = hn::Vec<decltype(d)>;
    Tiles tiles = where;  // what is stored through a char pointer could be the caller's
    for (; tiles.count != 0; --tiles.count) {
        Row rows[side], next[side];
        const char* from = tiles.from;
        for (Row& row : rows) {
            row = hn::LoadU(d, reinterpret_cast<const T*>(from));
            from += tiles.from_stride;
        }
        for (size_t round = 1; round < side; round *= 2) {
            for (size_t r = 0; r < side / 2; ++r) {
                next[2 * r] = hn::InterleaveLower(d, rows[r], rows[r + side / 2]);
                next[2 * r + 1] = hn::InterleaveUpper(d, rows[r], rows[r + side / 2]);
            }
            for (size_t r = 0; r < side; ++r) rows[r] = next[r];
        }
        char* to = tiles.to;
        for (const Row& row : rows) {
            hn::StoreU(row, d, reinterpret_cast<T*>(to));
            to += tiles.to_stride;
        }
        tiles.to += tiles.to_step;
        tiles.from += tiles.from_step;
    }
}

TransposeTiles transpose(size_t bytes) noexcept {
    switch (bytes) {
        case 1:
            return transpose_tiles<uint8_t>;
        case 2:
            return transpose_tiles<uint16_t>;
        case 4:
            return transpose_tiles<uint32_t>;
        default:
            return nullptr;  // of 8 bytes a register has two: slower than moving each
    }
}

}  // namespace
}  // namespace vecmpi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace vecmpi::kernels {

#if !HWY_ARCH_X86
namespace N_SVE {
using N_NEON::by_lines;
using N_NEON::transpose;
}  // namespace N_SVE
#endif

ShuffleGroups shuffle_groups(Isa isa, size_t lines) noexcept {
    constexpr const ShuffleGroups* by_isa[number_of_isas] = VECMPI_BY_ISA(by_lines);
    const ShuffleGroups* const found = by_isa[static_cast<size_t>(isa)];
    return found != nullptr ? found[lines - 1] : nullptr;
}

Transposer transposer_short(size_t bytes, Isa isa) noexcept {
    constexpr TransposeTiles (*by_isa[number_of_isas])(size_t) noexcept = VECMPI_BY_ISA(transpose);
    const auto found = by_isa[static_cast<size_t>(isa)];
    const TransposeTiles transpose = found != nullptr ? found(bytes) : nullptr;
    return transpose != nullptr ? Transposer{transpose, short_register_bytes} : Transposer{};
}

}  // namespace vecmpi::kernels
#endif
