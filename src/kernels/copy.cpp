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

// A call of memcpy for each piece: glibc copies pieces of this size by registers.
void copy_in_pieces(void* to, const void* from, size_t bytes) noexcept {
    auto* target = static_cast<unsigned char*>(to);
    const auto* source = static_cast<const unsigned char*>(from);
    while (bytes != 0) {
        const size_t piece = std::min(bytes, most_by_registers);
        std::memcpy(target, source, piece);
        target += piece;
        source += piece;
        bytes -= piece;
    }
}

// A `rep movsb` of more is as fast as registers: glibc's choice, the second-level cache.
void copy_bytes(void* to, const void* from, size_t bytes) noexcept {
    constexpr size_t most = 1 << 20;
    if (bytes > most_by_registers && bytes <= most && has_slow_memcpy())
        copy_in_pieces(to, from, bytes);
    else if (bytes != 0)  // a null buffer with no bytes is legal in MPI
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
