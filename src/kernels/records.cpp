// SPDX-License-Identifier: BSD-3-Clause
// Records of a few blocks each, to and from a packed stream. Baseline code: vector code is
// elsewhere.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <span>

#include "cpu.hpp"
#include "permutation.hpp"

namespace vecmpi::kernels {

void TablesDeleter::operator()(Permutation* tables) const noexcept { std::free(tables); }
void TablesDeleter::operator()(Shuffle* tables) const noexcept { std::free(tables); }

namespace {

template <class Tables>
std::unique_ptr<Tables[], TablesDeleter> allocate_tables(size_t number) {
    void* memory = std::aligned_alloc(alignof(Tables), number * sizeof(Tables));
    if (memory == nullptr) throw std::bad_alloc();
    return std::unique_ptr<Tables[], TablesDeleter>(static_cast<Tables*>(memory));
}

// Of all tables of a record.
struct Cost {
    size_t lines = 0, moves = 0;
};
Cost cost_of(std::span<const Permutation> tables) noexcept {
    Cost cost;
    for (const Permutation& one : tables) {
        cost.lines += one.lines;
        cost.moves += one.moves;
    }
    return cost;
}

// A tile of records is passed once for each block, so it should stay in the first-level cache.
constexpr int64_t tile_bytes = 16 << 10;

size_t records_of_tile(size_t records, int64_t stride, size_t blocks) noexcept {
    if (blocks == 1) return records;
    const int64_t distance = std::max<int64_t>(stride < 0 ? -stride : stride, 1);
    return static_cast<size_t>(std::max<int64_t>(tile_bytes / distance, 8));
}

}  // namespace
const char* pack_way_name(PackWay way) noexcept {
    static constexpr const char* names[number_of_pack_ways] = {"block", "permute", "gather"};
    return names[static_cast<size_t>(way)];
}

bool is_chosen(const PackLimits& limits, PackKernel kernel, int64_t block_bytes, int64_t distance,
               bool built_in) noexcept {
    const bool permutes =
        kernel == PackKernel::pack_permute || kernel == PackKernel::unpack_permute;
    const bool gathers = kernel == PackKernel::pack_gather || kernel == PackKernel::unpack_gather;
    if (!limits.any_way)
        return (permutes && limits.only == PackWay::permute) ||
               (gathers && limits.only == PackWay::gather);
    const PackVerdict verdict = limits.table.at(kernel, block_bytes, distance);
    return verdict == PackVerdict::built_in ? built_in : verdict == PackVerdict::yes;
}

RecordCopier::RecordCopier(std::vector<Block> blocks, int64_t stride, const PackLimits& limits)
    : blocks_(std::move(blocks)), stride_(stride), isa_(capped_isa(best_isa(), limits.isa)) {
    low_ = high_ = blocks_[0].offset;
    for (const Block& block : blocks_) {
        packed_bytes_ += static_cast<size_t>(block.bytes);
        low_ = std::min(low_, block.offset);
        high_ = std::max(high_, block.offset + block.bytes);
    }
    if (!limits.any_way && limits.only != PackWay::permute) return;
    if (bytes_can_be_permuted(isa_))
        prepare_permutations(limits);
    else if (shuffle_groups(isa_, 1) != nullptr)
        prepare_shuffles(limits);
}

void RecordCopier::choose(Direction direction, const PackLimits& limits, bool built_in) noexcept {
    const auto number = static_cast<int64_t>(blocks_.size());
    const PackKernel kernel =
        direction == Direction::pack ? PackKernel::pack_permute : PackKernel::unpack_permute;
    if (is_chosen(limits, kernel, static_cast<int64_t>(packed_bytes_) / number,
                  std::abs(stride_) / number, built_in))
        ways_[static_cast<size_t>(direction)] = PackWay::permute;
}

void RecordCopier::prepare_permutations(const PackLimits& limits) {
    const PermutationChoice choice = choose_permutations(blocks_, stride_);
    number_of_permutations_ = choice.number;
    if (number_of_permutations_ == 0) return;
    permutations_ = allocate_tables<Permutation>(number_of_permutations_);
    make_permutations(blocks_, stride_, choice, permutations_.get());
    const Cost cost = cost_of({permutations_.get(), number_of_permutations_});
    for (const Direction direction : {Direction::pack, Direction::unpack})
        choose(direction, limits, is_faster(direction, cost.lines, cost.moves));
}

void RecordCopier::prepare_shuffles(const PackLimits& limits) {
    const PermutationChoice choice = choose_shuffles(blocks_, stride_);
    number_of_shuffles_ = choice.number;
    if (number_of_shuffles_ == 0) return;
    shuffles_ = allocate_tables<Shuffle>(number_of_shuffles_);
    make_shuffles(blocks_, stride_, choice, shuffles_.get());
    // 12 bytes of 24 within 8 KiB on a Zen 2: 33 GB/s gathered by loads, 24 by shuffles. Of ints
    // only many are faster shuffled: 16 of every second take 29 ns by shuffles and 15 by loads, 128
    // take 43 and 34, 2048 take 332 and 381.
    const int64_t alone = blocks_.size() == 1 ? blocks_[0].bytes : 0;
    if (alone == 4) least_shuffled_ = 256;
    choose(Direction::pack, limits, alone != 12);
}

size_t RecordCopier::memory_bytes() const noexcept {
    return sizeof(*this) + blocks_.capacity() * sizeof(Block) +
           number_of_permutations_ * sizeof(Permutation) + number_of_shuffles_ * sizeof(Shuffle);
}

// Block after block through a tile of records.
void RecordCopier::copy_blocks(Direction direction, char* packed, char* memory,
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

// Copies whole groups, at most `most`, whose windows may be read. function_of(lines) copies the
// groups of one table. Returns the number of records copied.
template <class Tables, class FunctionOf>
size_t RecordCopier::copy_groups(std::span<const Tables> tables, size_t most, char* packed,
                                 char* memory, size_t records,
                                 FunctionOf function_of) const noexcept {
    size_t groups = most;
    for (const Tables& one : tables)
        groups = std::min(groups, groups_within(window_of(one), stride_, low_, high_, records));
    const size_t records_of_group = tables[0].records;
    const auto memory_step = static_cast<int64_t>(records_of_group) * stride_;
    const size_t packed_step = records_of_group * packed_bytes_;
    // The parts of a long record are copied one by one, through a tile that stays in the cache.
    const size_t tile = tables.size() == 1 ? groups : records_of_tile(groups, memory_step, 2);
    for (size_t first = 0; first < groups; first += tile)
        for (const Tables& one : tables)
            function_of(one.lines)(one, packed + first * packed_step, packed_step,
                                   memory + static_cast<int64_t>(first) * memory_step, memory_step,
                                   std::min(tile, groups - first));
    return groups * records_of_group;
}

// 1. Groups whose windows may be read. 2. The other records, byte for byte.
void RecordCopier::permute_whole(Direction direction, char* packed, char* memory,
                                 size_t records) const noexcept {
    const std::span<const Permutation> tables(permutations_.get(), number_of_permutations_);
    const size_t done =
        copy_groups(tables, SIZE_MAX, packed, memory, records,  // 1
                    [&](size_t lines) noexcept { return copy_groups_avx512(direction, lines); });
    permute_parts(direction, packed + done * packed_bytes_,
                  memory + static_cast<int64_t>(done) * stride_, records - done);  // 2
}

// Byte for byte, group by group; the last group may be incomplete.
void RecordCopier::permute_parts(Direction direction, char* packed, char* memory,
                                 size_t records) const noexcept {
    const size_t records_of_group = permutations_[0].records;
    for (size_t done = 0; done < records; done += records_of_group) {
        const size_t rest = std::min(records_of_group, records - done);
        for (size_t i = 0; i < number_of_permutations_; ++i)
            copy_group_part_avx512(direction, permutations_[i], packed + done * packed_bytes_,
                                   memory + static_cast<int64_t>(done) * stride_,
                                   std::min(rest * packed_bytes_, permutations_[i].packed_bytes));
    }
}

// Where all groups' windows have the same place within their lines, a few records are done first.
// Then windows begin with a line, and cross no more lines than they must.
void RecordCopier::permute(Direction direction, char* packed, char* memory,
                           size_t records) const noexcept {
    constexpr size_t groups_worth_it = 8;
    const Permutation& tables = permutations_[0];
    const auto step = static_cast<int64_t>(tables.records) * stride_;
    const bool lie_alike = number_of_permutations_ == 1 && step % int64_t{register_bytes} == 0;
    for (size_t before = 0;
         lie_alike && records >= groups_worth_it * tables.records && before < tables.records;
         ++before) {
        const auto window =
            reinterpret_cast<uintptr_t>(memory) +
            static_cast<uintptr_t>(tables.window_offset + static_cast<int64_t>(before) * stride_);
        if (window % register_bytes != 0) continue;
        permute_parts(direction, packed, memory, before);
        packed += before * packed_bytes_;
        memory += static_cast<int64_t>(before) * stride_;
        records -= before;
        break;
    }
    permute_whole(direction, packed, memory, records);
}

// 1. Groups whose windows may be read and whose registers fit into the stream. 2. The other
// records, block by block.
void RecordCopier::shuffle(char* packed, char* memory, size_t records) const noexcept {
    const std::span<const Shuffle> tables(shuffles_.get(), number_of_shuffles_);
    const size_t packed_end = records * packed_bytes_;
    const size_t group_bytes = tables[0].records * packed_bytes_;
    size_t fitting = packed_end < short_register_bytes ? 0 : records / tables[0].records;
    while (fitting != 0 && (fitting - 1) * group_bytes + short_register_bytes > packed_end)
        --fitting;
    const size_t done =
        copy_groups(tables, fitting, packed, memory, records,  // 1
                    [&](size_t lines) noexcept { return shuffle_groups(isa_, lines); });
    copy_blocks(Direction::pack, packed + done * packed_bytes_,
                memory + static_cast<int64_t>(done) * stride_, records - done);  // 2
}

void RecordCopier::copy(Direction direction, char* packed, char* memory,
                        size_t records) const noexcept {
    if (goes_by_blocks(direction, records))
        copy_blocks(direction, packed, memory, records);
    else if (number_of_shuffles_ != 0)
        shuffle(packed, memory, records);
    else
        permute(direction, packed, memory, records);
}

// May the windows of a row reach over its end? The memory up to a page behind it is mapped if the
// next row is. That row ends no earlier than the windows, which reach over by less than a register.
bool RecordCopier::rows_may_be_read_over(size_t records, int64_t row_stride) const noexcept {
    constexpr int64_t page_bytes = 4096;
    const auto sign = [](int64_t value) { return value < 0; };
    const int64_t row_bytes =
        std::abs(stride_) * static_cast<int64_t>(records - 1) + (high_ - low_);
    return number_of_permutations_ == 1 && records >= permutations_[0].records &&
           sign(stride_) == sign(row_stride) &&
           std::abs(row_stride) >= static_cast<int64_t>(register_bytes) - 1 &&
           std::abs(row_stride) - row_bytes < page_bytes;
}

// Rows of single blocks: what moves them is looked up once.
void RecordCopier::copy_rows_of_blocks(Direction direction, char* packed, char* memory,
                                       size_t records, size_t rows,
                                       int64_t row_stride) const noexcept {
    const size_t bytes = packed_bytes_;
    const auto packed_stride = static_cast<ptrdiff_t>(bytes);
    const CopyStrided copy = strided_copy(bytes, isa_);
    memory += blocks_[0].offset;
    for (; rows > 0; --rows) {
        if (direction == Direction::pack)
            copy({packed, packed_stride, memory, stride_, records, bytes});
        else
            copy({memory, stride_, packed, packed_stride, records, bytes});
        packed += records * bytes;
        memory += row_stride;
    }
}

// 1. All rows but the last: whole groups at once, the rest of a row byte for byte. 2. The last row,
// and every row where they are far apart: within its bounds.
void RecordCopier::copy_rows(Direction direction, char* packed, char* memory, size_t records,
                             size_t rows, int64_t row_stride) const noexcept {
    if (goes_by_blocks(direction, records) && blocks_.size() == 1)
        return copy_rows_of_blocks(direction, packed, memory, records, rows, row_stride);
    const size_t row_bytes = records * packed_bytes_;
    if (way(direction) == PackWay::permute && rows_may_be_read_over(records, row_stride)) {  // 1
        const Permutation& tables = permutations_[0];
        const CopyGroups copy_groups = copy_groups_avx512(direction, tables.lines);
        const size_t groups = records / tables.records, whole = groups * tables.records;
        for (; rows > 1; --rows) {
            copy_groups(tables, packed, tables.packed_bytes, memory,
                        static_cast<int64_t>(tables.records) * stride_, groups);
            permute_parts(direction, packed + whole * packed_bytes_,
                          memory + static_cast<int64_t>(whole) * stride_, records - whole);
            packed += row_bytes;
            memory += row_stride;
        }
    }
    for (; rows > 0; --rows) {  // 2
        copy(direction, packed, memory, records);
        packed += row_bytes;
        memory += row_stride;
    }
}

}  // namespace vecmpi::kernels
