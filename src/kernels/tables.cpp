// SPDX-License-Identifier: BSD-3-Clause
// Many blocks at offsets of a table, to and from a packed stream. Baseline code: vector code is
// elsewhere.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "blocks.hpp"
#include "cpu.hpp"
#include "fixed_blocks.hpp"

namespace vecmpi::kernels {

namespace {

constexpr size_t most_fixed_bytes = 64;

inline void copy_block(Direction direction, char* packed, char* memory, size_t bytes) noexcept {
    std::memcpy(direction == Direction::pack ? packed : memory,
                direction == Direction::pack ? memory : packed, bytes);
}

// `count` blocks of Bytes bytes at offsets[i].
using CopyTable = void (*)(Direction direction, char* packed, char* memory, const int64_t* offsets,
                           size_t count) noexcept;

template <size_t Bytes>
void copy_short(Direction direction, char* packed, char* memory, const int64_t* offsets,
                size_t count) noexcept {
    constexpr auto dense = static_cast<ptrdiff_t>(Bytes);
    if (direction == Direction::pack)
        pack_fixed<Bytes>(packed, PlacesOfTable<const char>{memory, offsets}, count);
    else
        copy_fixed<Bytes>(PlacesOfTable<char>{memory, offsets},
                          PlacesAtDistance<const char>{packed, dense}, count);
}

template <size_t... bytes>
constexpr std::array<CopyTable, sizeof...(bytes)> fixed_copies(std::index_sequence<bytes...>) {
    return {copy_short<bytes>...};
}
constexpr auto by_bytes = fixed_copies(std::make_index_sequence<most_fixed_bytes + 1>());

// The mean distance of neighbours in memory, whatever the order of the table.
int64_t mean_distance(const std::vector<int64_t>& offsets) {
    if (offsets.empty()) return 0;
    const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
    return (*high - *low) / std::max<int64_t>(static_cast<int64_t>(offsets.size()) - 1, 1);
}

Isa isa_of_masked_moves(const std::vector<Block>& blocks, const PackLimits& limits) {
    std::vector<int64_t> offsets;
    int64_t bytes = 0;
    for (const Block& block : blocks) {
        offsets.push_back(block.offset);
        bytes += block.bytes;
    }
    const auto number = static_cast<int64_t>(std::max<size_t>(blocks.size(), 1));
    const bool are_used =
        is_chosen(limits, PackKernel::masked, bytes / number, mean_distance(offsets), true);
    return are_used ? capped_isa(best_isa(), limits.isa) : Isa::scalar;
}

}  // namespace
TableCopier::TableCopier(const std::vector<int64_t>& offsets, size_t bytes,
                         const PackLimits& limits)
    : offsets_(offsets),
      block_bytes_(bytes),
      packed_bytes_(offsets.size() * bytes),
      isa_(capped_isa(best_isa(), limits.isa)) {
    if (!can_gather(bytes, isa_)) return;
    const auto block_bytes = static_cast<int64_t>(bytes);
    const int64_t distance = mean_distance(offsets_);
    if (is_chosen(limits, PackKernel::pack_gather, block_bytes, distance, has_fast_gather()))
        ways_[static_cast<size_t>(Direction::pack)] = PackWay::gather;
    // Single stores are as fast as a scatter, or up to a fifth faster.
    if (is_chosen(limits, PackKernel::unpack_gather, block_bytes, distance, false))
        ways_[static_cast<size_t>(Direction::unpack)] = PackWay::gather;
}

// The user cannot ask for masked moves.
TableCopier::TableCopier(const std::vector<Block>& blocks, const PackLimits& limits)
    : isa_(isa_of_masked_moves(blocks, limits)) {
    offsets_.reserve(blocks.size());
    starts_.reserve(blocks.size() + 1);
    for (const Block& block : blocks) {
        offsets_.push_back(block.offset);
        starts_.push_back(static_cast<int64_t>(packed_bytes_));
        packed_bytes_ += static_cast<size_t>(block.bytes);
    }
    starts_.push_back(static_cast<int64_t>(packed_bytes_));
}

// The block that byte `first` of the stream belongs to.
size_t TableCopier::block_at(size_t first) const noexcept {
    if (block_bytes_ != 0) return first / block_bytes_;
    const auto after =
        std::upper_bound(starts_.begin(), starts_.end(), static_cast<int64_t>(first));
    return static_cast<size_t>(after - starts_.begin()) - 1;
}

// 1. The rest of a block that an earlier call began. 2. Whole blocks. 3. The beginning of one.
void TableCopier::copy(Direction direction, char* packed, char* memory, size_t first,
                       size_t bytes) const noexcept {
    const size_t end = first + bytes;
    size_t block = block_at(first);
    if (const size_t begun = first - start_of(block); begun != 0) {  // 1
        const size_t rest = std::min(start_of(block + 1) - first, bytes);
        copy_block(direction, packed, memory + offsets_[block] + begun, rest);
        packed += rest;
        ++block;
        if (rest == bytes) return;
    }
    const size_t last = end == packed_bytes_ ? offsets_.size() : block_at(end);
    const size_t count = last - block;  // 2
    const int64_t* const offsets = offsets_.data() + block;
    if (way(direction) == PackWay::gather) {
        gather_table_avx512(direction, packed, memory, offsets, block_bytes_, count);
    } else if (block_bytes_ != 0 && block_bytes_ <= most_fixed_bytes) {
        by_bytes[block_bytes_](direction, packed, memory, offsets, count);
    } else if (block_bytes_ == 0 && isa_ == Isa::avx512) {
        copy_short_blocks_avx512(direction, packed, memory, offsets, starts_.data() + block, count);
    } else {
        for (size_t i = 0; i < count; ++i) {
            const size_t at = start_of(block + i);
            copy_block(direction, packed + (at - start_of(block)), memory + offsets[i],
                       start_of(block + i + 1) - at);
        }
    }
    if (last == offsets_.size()) return;
    const size_t begun = end - start_of(last);  // 3
    if (begun != 0)
        copy_block(direction, packed + (start_of(last) - start_of(block)), memory + offsets_[last],
                   begun);
}

}  // namespace vecmpi::kernels
