// SPDX-License-Identifier: BSD-3-Clause
// Blocks of one length at a distance. Baseline code, which every CPU runs.
#include <array>
#include <utility>

#include "blocks.hpp"
#include "fixed_blocks.hpp"

namespace vecmpi::kernels {
namespace {

// Lengths with a loop of their own: a block is a few moves and no call.
constexpr size_t most_fixed_bytes = 64;

template <size_t Bytes>
void copy_short(const StridedCopy& copy) noexcept {
    const PlacesAtDistance<const char> from{copy.from, copy.from_stride};
    if (copy.to_stride == static_cast<ptrdiff_t>(Bytes))
        pack_fixed<Bytes>(copy.to, from, copy.count);
    else
        copy_fixed<Bytes>(PlacesAtDistance<char>{copy.to, copy.to_stride}, from, copy.count);
}

void copy_any(const StridedCopy& copy) noexcept {
    char* to = copy.to;
    const char* from = copy.from;
    for (size_t i = copy.count; i != 0; --i) {
        copy_bytes(to, from, copy.bytes);
        to += copy.to_stride;
        from += copy.from_stride;
    }
}

template <size_t... bytes>
constexpr std::array<CopyStrided, sizeof...(bytes)> fixed_copies(std::index_sequence<bytes...>) {
    return {copy_short<bytes>...};
}
constexpr auto by_bytes = fixed_copies(std::make_index_sequence<most_fixed_bytes + 1>());

}  // namespace

CopyStrided strided_copy_baseline(size_t bytes) noexcept {
    return bytes <= most_fixed_bytes ? by_bytes[bytes] : copy_any;
}

CopyStrided strided_copy(size_t bytes, Isa isa) noexcept {
    const CopyStrided found = isa == Isa::avx512 ? strided_copy_avx512(bytes)
                              : isa == Isa::avx2 ? strided_copy_avx2(bytes)
                                                 : nullptr;
    return found != nullptr ? found : strided_copy_baseline(bytes);
}

}  // namespace vecmpi::kernels
