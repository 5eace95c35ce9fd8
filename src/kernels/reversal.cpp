// SPDX-License-Identifier: BSD-3-Clause
// Values between the byte order of this host and the other one. Compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reversal.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <bit>

#include "blocks.hpp"
#include "cpu.hpp"
#include "loop-inl.hpp"

#if VECMPI_VECTOR_TARGET
HWY_BEFORE_NAMESPACE();
namespace vecmpi::kernels::HWY_NAMESPACE {
namespace {

// Every vector unit permutes within 16 bytes, which hold whole values.
template <size_t width>
struct alignas(short_register_bytes) Order {
    uint8_t index[short_register_bytes];
    constexpr Order() noexcept : index() {
        for (size_t i = 0; i < short_register_bytes; ++i)
            index[i] = static_cast<uint8_t>(i / width * width + width - 1 - i % width);
    }
};

template <class D, class V>
HWY_INLINE void reverse_vector(D d, V order, uint8_t* to, const uint8_t* from) {
    hn::StoreU(hn::TableLookupBytes(hn::LoadU(d, from), order), d, to);
}

// Four vectors an iteration, loaded before the first of them is stored. No last vector that
// overlaps its neighbour: in place it would be reversed twice.
template <size_t width>
void reverse(void* to_bytes, const void* from_bytes, size_t bytes) noexcept {
    static constexpr Order<width> shuffled;
    auto* const to = static_cast<uint8_t*>(to_bytes);
    const auto* const from = static_cast<const uint8_t*>(from_bytes);
    const hn::ScalableTag<uint8_t> d;
    const size_t lanes = hn::Lanes(d);
    const auto order = hn::LoadDup128(d, shuffled.index);
    size_t i = 0;
    for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
        const auto v0 = hn::LoadU(d, from + i);
        const auto v1 = hn::LoadU(d, from + i + lanes);
        const auto v2 = hn::LoadU(d, from + i + 2 * lanes);
        const auto v3 = hn::LoadU(d, from + i + 3 * lanes);
        hn::StoreU(hn::TableLookupBytes(v0, order), d, to + i);
        hn::StoreU(hn::TableLookupBytes(v1, order), d, to + i + lanes);
        hn::StoreU(hn::TableLookupBytes(v2, order), d, to + i + 2 * lanes);
        hn::StoreU(hn::TableLookupBytes(v3, order), d, to + i + 3 * lanes);
    }
    for (; i + lanes <= bytes; i += lanes) reverse_vector(d, order, to + i, from + i);
    const hn::FixedTag<uint8_t, short_register_bytes> d_short;
    const auto order_short = hn::Load(d_short, shuffled.index);
    for (; i + short_register_bytes <= bytes; i += short_register_bytes)
        reverse_vector(d_short, order_short, to + i, from + i);
    reverse_plainly(to + i, from + i, bytes - i, width);
}

constexpr ReverseBytes reversals[number_of_reversals] = {reverse<2>, reverse<4>, reverse<8>,
                                                         reverse<16>};

}  // namespace
}  // namespace vecmpi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace vecmpi::kernels {

void reverse_bytes(void* to, const void* from, size_t bytes, size_t width, Isa cap) noexcept {
    constexpr const ReverseBytes* by_isa[number_of_isas] = VECMPI_BY_ISA(reversals);
    const ReverseBytes* const found = by_isa[static_cast<size_t>(capped_isa(best_isa(), cap))];
    if (found == nullptr) return reverse_plainly(to, from, bytes, width);
    found[std::countr_zero(width) - 1](to, from, bytes);
}

}  // namespace vecmpi::kernels
#endif
