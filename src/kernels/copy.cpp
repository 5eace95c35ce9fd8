// SPDX-License-Identifier: BSD-3-Clause
// Copying of bytes between buffers that do not overlap, and reversing them in baseline code.
#include <algorithm>
#include <cstring>

#include "blocks.hpp"
#include "cpu.hpp"

namespace vecmpi::kernels {

namespace {

template <size_t width>
void reverse_values(unsigned char* to, const unsigned char* from, size_t bytes) noexcept {
    for (size_t i = 0; i < bytes; i += width) {
        unsigned char value[width];
        std::memcpy(value, from + i, width);
        std::reverse(value, value + width);
        std::memcpy(to + i, value, width);
    }
}

}  // namespace

bool are_unlucky(const void* to, const void* from) noexcept {
    constexpr uintptr_t page_bytes = 4096, first = 1, last = 31;
    const uintptr_t behind =
        (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % page_bytes;
    return first <= behind && behind <= last;
}

void copy_from_end(void* to, const void* from, size_t bytes) noexcept {
    constexpr size_t piece = 512;
    auto* const target = static_cast<unsigned char*>(to);
    const auto* const source = static_cast<const unsigned char*>(from);
    for (; bytes >= piece; bytes -= piece)
        std::memcpy(target + bytes - piece, source + bytes - piece, piece);
    std::memcpy(target, source, bytes);
}

// glibc takes `rep movsb` from 2112 bytes on where the CPU has FSRM, else from more, up to the size
// of the second-level cache.
static_assert(longest_short_copy < 2112);
void copy_long_bytes(void* to, const void* from, size_t bytes) noexcept {
    constexpr size_t most = 1 << 20;
    if (bytes <= most && are_unlucky(to, from) && has_stalling_movsb())
        copy_from_end(to, from, bytes);
    else
        std::memcpy(to, from, bytes);
}

void reverse_plainly(void* to_bytes, const void* from_bytes, size_t bytes, size_t width) noexcept {
    auto* const to = static_cast<unsigned char*>(to_bytes);
    const auto* const from = static_cast<const unsigned char*>(from_bytes);
    switch (width) {
        case 2:
            return reverse_values<2>(to, from, bytes);
        case 4:
            return reverse_values<4>(to, from, bytes);
        case 8:
            return reverse_values<8>(to, from, bytes);
        default:
            return reverse_values<16>(to, from, bytes);
    }
}

}  // namespace vecmpi::kernels
