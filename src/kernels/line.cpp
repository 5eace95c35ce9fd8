// SPDX-License-Identifier: BSD-3-Clause
// Stores of a line that other CPUs read: in pieces of one width, the piece with the flag last.
#include <atomic>

#include "cpu.hpp"
#include "kernels/api.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// ThreadSanitizer knows no order but that of atomic operations.
#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__)
#define VECMPI_LINES_OF_WORDS 1
#endif

namespace vecmpi::kernels {
namespace {

constexpr size_t line_words = sizeof(Line) / sizeof(uint64_t);

// Data words relaxed, then the flag with release: pairs with the reader's acquire.
template <size_t DataWords>
void store_words(Line* to, const Line* from) noexcept {
    auto* const there = reinterpret_cast<uint64_t*>(to);
    const auto* const here = reinterpret_cast<const uint64_t*>(from);
    for (size_t i = line_words - 1 - DataWords; i < line_words - 1; ++i)
        std::atomic_ref(there[i]).store(here[i], std::memory_order_relaxed);
    std::atomic_ref(there[line_words - 1]).store(here[line_words - 1], std::memory_order_release);
}

#if !defined(VECMPI_LINES_OF_WORDS)
// x86-64 keeps stores in program order, so only the compiler must be held between two pieces.
inline void in_this_order() noexcept { asm volatile("" ::: "memory"); }

template <int Pieces>
void store_sse(Line* to, const Line* from) noexcept {
    in_this_order();
    for (int i = 4 - Pieces; i < 4; ++i) {
        const auto* const here = reinterpret_cast<const __m128i*>(from) + i;
        _mm_store_si128(reinterpret_cast<__m128i*>(to) + i, _mm_load_si128(here));
        in_this_order();
    }
}
#endif

}  // namespace

#if !defined(VECMPI_LINES_OF_WORDS)
namespace N_AVX2 {
namespace {
template <int Pieces>
__attribute__((target("avx2"))) void store(Line* to, const Line* from) noexcept {
    asm volatile("" ::: "memory");
    for (int i = 2 - Pieces; i < 2; ++i) {
        const auto* const here = reinterpret_cast<const __m256i*>(from) + i;
        _mm256_store_si256(reinterpret_cast<__m256i*>(to) + i, _mm256_load_si256(here));
        asm volatile("" ::: "memory");
    }
}
}  // namespace
}  // namespace N_AVX2

namespace N_AVX3 {
namespace {
__attribute__((target("avx512f"))) void store(Line* to, const Line* from) noexcept {
    asm volatile("" ::: "memory");
    _mm512_store_si512(to, _mm512_load_si512(from));
    asm volatile("" ::: "memory");
}
}  // namespace
}  // namespace N_AVX3
#endif

namespace {

constexpr StoreLine words_stores[line_words] = {store_words<0>, store_words<1>, store_words<2>,
                                                store_words<3>, store_words<4>, store_words<5>,
                                                store_words<6>, store_words<7>};

}  // namespace
LineWidth promised_line_width() noexcept {
#if defined(VECMPI_LINES_OF_WORDS)
    return LineWidth::bytes8;
#else
    // Intel SDM volume 3A, 9.1.1, and AMD APM volume 2, 7.3.2: with AVX, aligned 16 bytes.
    return best_isa() >= Isa::avx2 ? LineWidth::bytes16 : LineWidth::bytes8;
#endif
}

LineWidth widest_line_width() noexcept {
#if defined(VECMPI_LINES_OF_WORDS)
    return LineWidth::bytes8;
#else
    if (best_isa() == Isa::avx512) return LineWidth::bytes64;
    return best_isa() == Isa::avx2 ? LineWidth::bytes32 : LineWidth::bytes16;
#endif
}

StoreLine line_store(LineWidth width, size_t bytes) noexcept {
    const size_t words = (bytes + 7) / 8;
    const LineWidth widest = widest_line_width();
    if (width > widest) width = widest;
    if (width == LineWidth::bytes8 || words == 0) return words_stores[words];
#if !defined(VECMPI_LINES_OF_WORDS)
    if (words == 1) return store_sse<1>;
    if (width >= LineWidth::bytes32 && words <= 3) return N_AVX2::store<1>;
    if (width == LineWidth::bytes64) return N_AVX3::store;
    if (width == LineWidth::bytes32) return N_AVX2::store<2>;
    constexpr StoreLine sse[] = {store_sse<1>, store_sse<2>, store_sse<3>, store_sse<4>};
    return sse[words / 2];
#else
    return words_stores[words];
#endif
}

}  // namespace vecmpi::kernels
