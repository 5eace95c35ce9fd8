// SPDX-License-Identifier: BSD-3-Clause
// Copying of bytes between buffers that do not overlap, and reversing them in baseline code.
#include <algorithm>
#include <cstring>

#include "blocks.hpp"

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

void copy_bytes(void* to, const void* from, size_t bytes) noexcept {
    if (bytes != 0) std::memcpy(to, from, bytes);  // a null buffer with no bytes is legal in MPI
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
