// SPDX-License-Identifier: BSD-3-Clause
// Many blocks at offsets of a table, to and from a packed stream. Baseline code: vector code is
// elsewhere.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "blocks.hpp"
#include "cpu.hpp"
#include "fixed_blocks.hpp"

namespace vecmpi::kernels {

namespace {

constexpr size_t most_fixed_bytes = 64;

inline void copy_block(Direction direction, char* packed, char* memory, size_t bytes) noexcept {
    copy_bytes(direction == Direction::pack ? packed : memory,
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

// The blocks numbers[0], numbers[1], ...: `packed` and `offsets` begin with block 0.
template <size_t Bytes>
void copy_numbered(Direction direction, char* packed, char* memory, const int64_t* offsets,
                   const uint16_t* numbers, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) {
        const size_t block = numbers[i];
        copy_block(direction, packed + block * Bytes, memory + offsets[block], Bytes);
    }
}

using CopyNumbered = void (*)(Direction direction, char* packed, char* memory,
                              const int64_t* offsets, const uint16_t* numbers,
                              size_t count) noexcept;
// Null: blocks of this length are not moved so.
constexpr CopyNumbered numbered_copy(size_t bytes) noexcept {
    switch (bytes) {
        case 4:
            return copy_numbered<4>;
        case 8:
            return copy_numbered<8>;
        case 16:
            return copy_numbered<16>;
        case 24:
            return copy_numbered<24>;
        default:
            return nullptr;
    }
}

// Doubles at random places of 64 MiB, ns for each, in the order of the table and of memory: 4096 of
// them 13.5 and 11.9, 16384 15.4 and 9.6; of 4 MiB 2.7 and 2.5.
bool gain_by_order(const std::vector<int64_t>& offsets) {
    constexpr size_t least_blocks = 8192;
    constexpr int64_t least_span = 16 << 20;
    if (offsets.size() < least_blocks) return false;
    const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
    size_t descents = 0;
    for (size_t i = 1; i < offsets.size(); ++i) descents += offsets[i] < offsets[i - 1] ? 1 : 0;
    return *high - *low >= least_span && descents >= offsets.size() / 4;
}

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

// ns one by one and by tiles: 512 bytes in 6 blocks 32 and 45, in 14 blocks 47 and 43; 32 KiB in
// 210 blocks of 4 to 320 bytes 1470 and 1310, which is less than what the tiles cost beyond a
// cache.
bool gain_by_tiles(const std::vector<Block>& blocks, size_t bytes) noexcept {
    constexpr size_t least_blocks = 16, most_mean_bytes = 128;
    return blocks.size() >= least_blocks && bytes / blocks.size() <= most_mean_bytes;
}

}  // namespace
TableCopier::TableCopier(const std::vector<int64_t>& offsets, size_t bytes,
                         const PackLimits& limits)
    : offsets_(offsets),
      block_bytes_(bytes),
      packed_bytes_(offsets.size() * bytes),
      isa_(capped_isa(best_isa(), limits.isa)) {
    if (limits.any_way && numbered_copy(bytes) != nullptr && gain_by_order(offsets_)) {
        sort_windows();
        return;
    }
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
    if (isa_ != Isa::avx512 && limits.any_way && gain_by_tiles(blocks, packed_bytes_))
        make_tiles(blocks);
}

void TableCopier::make_tiles(const std::vector<Block>& blocks) {
    for (size_t i = 0; i < blocks.size(); i += LengthTile::most_blocks)
        tiles_.push_back(
            sorted_tile(&blocks[i], std::min(blocks.size() - i, LengthTile::most_blocks)));
}

void TableCopier::sort_windows() {
    ascending_.resize(offsets_.size());
    for (size_t begin = 0; begin < offsets_.size(); begin += blocks_of_window) {
        const size_t count = std::min(offsets_.size() - begin, blocks_of_window);
        const int64_t* const offsets = &offsets_[begin];
        uint16_t* const numbers = &ascending_[begin];
        std::iota(numbers, numbers + count, uint16_t{0});
        std::sort(numbers, numbers + count,
                  [=](uint16_t a, uint16_t b) { return offsets[a] < offsets[b]; });
    }
}

// The block that byte `first` of the stream belongs to.
size_t TableCopier::block_at(size_t first) const noexcept {
    if (block_bytes_ != 0) return first / block_bytes_;
    const auto after =
        std::upper_bound(starts_.begin(), starts_.end(), static_cast<int64_t>(first));
    return static_cast<size_t>(after - starts_.begin()) - 1;
}

void TableCopier::copy_one_by_one(Direction direction, char* packed, char* memory, size_t block,
                                  size_t end) const noexcept {
    const size_t first = start_of(block);
    for (; block < end; ++block) {
        const size_t at = start_of(block);
        copy_block(direction, packed + (at - first), memory + offsets_[block],
                   start_of(block + 1) - at);
    }
}

// Tiles of which a call has only a part go block by block.
void TableCopier::copy_by_tiles(Direction direction, char* packed, char* memory, size_t block,
                                size_t end) const noexcept {
    constexpr size_t most = LengthTile::most_blocks;
    while (block < end) {
        const size_t tile = block / most;
        const size_t tile_end = std::min((tile + 1) * most, offsets_.size());
        const size_t part_end = std::min(tile_end, end);
        if (block == tile * most && part_end == tile_end)
            copy_tile(direction, tiles_[tile], packed, memory, &offsets_[block], &starts_[block]);
        else
            copy_one_by_one(direction, packed, memory, block, part_end);
        packed += start_of(part_end) - start_of(block);
        block = part_end;
    }
}

// Windows of which a call has only a part go in the order of the table.
void TableCopier::copy_by_windows(Direction direction, char* packed, char* memory, size_t block,
                                  size_t end) const noexcept {
    while (block < end) {
        const size_t begin = block / blocks_of_window * blocks_of_window;
        const size_t window_end = std::min(begin + blocks_of_window, offsets_.size());
        const size_t part_end = std::min(window_end, end);
        const int64_t* const offsets = &offsets_[block];
        if (block == begin && part_end == window_end)
            numbered_copy(block_bytes_)(direction, packed, memory, offsets, &ascending_[block],
                                        part_end - block);
        else
            by_bytes[block_bytes_](direction, packed, memory, offsets, part_end - block);
        packed += (part_end - block) * block_bytes_;
        block = part_end;
    }
}

// Blocks [block, end), all whole.
void TableCopier::copy_blocks(Direction direction, char* packed, char* memory, size_t block,
                              size_t end) const noexcept {
    const size_t count = end - block;
    const int64_t* const offsets = offsets_.data() + block;
    if (!ascending_.empty()) {
        copy_by_windows(direction, packed, memory, block, end);
    } else if (way(direction) == PackWay::gather) {
        gather_table_avx512(direction, packed, memory, offsets, block_bytes_, count);
    } else if (block_bytes_ != 0 && block_bytes_ <= most_fixed_bytes) {
        by_bytes[block_bytes_](direction, packed, memory, offsets, count);
    } else if (block_bytes_ == 0 && isa_ == Isa::avx512) {
        copy_short_blocks_avx512(direction, packed, memory, offsets, starts_.data() + block, count);
    } else if (!tiles_.empty()) {
        copy_by_tiles(direction, packed, memory, block, end);
    } else {
        copy_one_by_one(direction, packed, memory, block, end);
    }
}

// 1. The rest of a block that an earlier call began. 2. Whole blocks. 3. The beginning of one.
void TableCopier::copy(Direction direction, char* packed, char* memory, size_t first,
                       size_t bytes) const noexcept {
    if (bytes == packed_bytes_) return copy_blocks(direction, packed, memory, 0, offsets_.size());
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
    copy_blocks(direction, packed, memory, block, last);  // 2
    if (last == offsets_.size()) return;
    const size_t begun = end - start_of(last);  // 3
    if (begun != 0)
        copy_block(direction, packed + (start_of(last) - start_of(block)), memory + offsets_[last],
                   begun);
}

}  // namespace vecmpi::kernels
