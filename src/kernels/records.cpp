// SPDX-License-Identifier: BSD-3-Clause
// Records of a few blocks each, to and from a packed stream. Baseline code: the vectors are
// elsewhere.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "cpu.hpp"
#include "permutation.hpp"

namespace vecmpi {

namespace kernels {

void PermutationDeleter::operator()(Permutation* tables) const noexcept { std::free(tables); }

namespace {

using Permutations = std::unique_ptr<Permutation[], PermutationDeleter>;

Permutations allocate_permutations(size_t number) {
    void* memory = std::aligned_alloc(register_bytes, number * sizeof(Permutation));
    if (memory == nullptr) throw std::bad_alloc();
    return Permutations(static_cast<Permutation*>(memory));
}

// A tile of records is gone through once for each block, so it should stay in the first-level
// cache.
constexpr int64_t tile_bytes = 16 << 10;

size_t records_of_tile(size_t records, int64_t stride, size_t blocks) noexcept {
    if (blocks == 1) return records;
    const int64_t distance = std::max<int64_t>(stride < 0 ? -stride : stride, 1);
    return static_cast<size_t>(std::max<int64_t>(tile_bytes / distance, 8));
}

}  // namespace
}  // namespace kernels

using namespace kernels;

const char* pack_way_name(PackWay way) noexcept {
    static constexpr const char* names[number_of_pack_ways] = {"block", "permute", "gather"};
    return names[static_cast<size_t>(way)];
}

RecordCopier::RecordCopier(std::vector<Block> blocks, int64_t stride, const PackLimits& limits)
    : blocks_(std::move(blocks)), stride_(stride), isa_(capped_isa(best_isa(), limits.isa)) {
    for (const Block& block : blocks_) packed_bytes_ += static_cast<size_t>(block.bytes);
    const bool may_permute = limits.any_way || limits.only == PackWay::permute;
    if (!may_permute || !bytes_can_be_permuted(isa_)) return;
    number_of_permutations_ = make_permutations(blocks_, stride_, nullptr);
    if (number_of_permutations_ == 0) return;
    permutations_ = allocate_permutations(number_of_permutations_);
    make_permutations(blocks_, stride_, permutations_.get());
    way_ = PackWay::permute;
}

// Block after block through a tile of records.
void RecordCopier::copy_columns(Direction direction, char* packed, char* memory,
                                size_t records) const noexcept {
    const size_t tile = records_of_tile(records, stride_, blocks_.size());
    const auto packed_stride = static_cast<ptrdiff_t>(packed_bytes_);
    for (size_t first = 0; first < records; first += tile) {
        const size_t count = std::min(tile, records - first);
        char* in_stream = packed + first * packed_bytes_;
        char* const base = memory + static_cast<int64_t>(first) * stride_;
        for (const Block& block : blocks_) {
            const auto bytes = static_cast<size_t>(block.bytes);
            char* const in_memory = base + block.offset;
            const CopyStrided copy = strided_copy(bytes, isa_);
            if (direction == Direction::pack)
                copy({in_stream, packed_stride, in_memory, stride_, count, bytes});
            else
                copy({in_memory, stride_, in_stream, packed_stride, count, bytes});
            in_stream += bytes;
        }
    }
}

void RecordCopier::copy(Direction direction, char* packed, char* memory,
                        size_t records) const noexcept {
    if (number_of_permutations_ == 0) return copy_columns(direction, packed, memory, records);
    int64_t low = blocks_[0].offset, high = low;
    for (const Block& block : blocks_) {
        low = std::min(low, block.offset);
        high = std::max(high, block.offset + block.bytes);
    }
    size_t groups = SIZE_MAX;
    for (size_t i = 0; i < number_of_permutations_; ++i)
        groups = std::min(groups, groups_within(permutations_[i], stride_, low, high, records));
    const size_t done = groups * permutations_[0].records;
    const auto memory_step = static_cast<int64_t>(permutations_[0].records) * stride_;
    const size_t packed_step = permutations_[0].records * packed_bytes_;
    // Parts of a long record one by one, through a tile that stays in the cache.
    const size_t tile = number_of_permutations_ == 1 ? groups : records_of_tile(0, memory_step, 2);
    for (size_t first = 0; first < groups; first += tile) {
        const size_t count = std::min(tile, groups - first);
        for (size_t i = 0; i < number_of_permutations_; ++i)
            copy_groups_avx512(direction, permutations_[i].lines)(
                permutations_[i], packed + first * packed_step, packed_step,
                memory + static_cast<int64_t>(first) * memory_step, memory_step, count);
    }
    if (done < records)
        copy_columns(direction, packed + done * packed_bytes_,
                     memory + static_cast<int64_t>(done) * stride_, records - done);
}

}  // namespace vecmpi
