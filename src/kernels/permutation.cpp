// SPDX-License-Identifier: BSD-3-Clause
// Tables of permutations. A record of at most half a register shares its group with others; a
// longer one is cut into parts of a register each.
#include "permutation.hpp"

#include <algorithm>
#include <cstring>

namespace vecmpi::kernels {
namespace {

// Where byte `at` of the stream of one record lies, from where the record stands.
int64_t place_of(std::span<const Block> blocks, int64_t at) noexcept {
    for (const Block& block : blocks) {
        if (at < block.bytes) return block.offset + at;
        at -= block.bytes;
    }
    return 0;
}

// A part of the stream: bytes [first, first + bytes) of `records` records together.
struct Part {
    std::span<const Block> blocks;
    int64_t stride, record_bytes, first, bytes;
    int64_t place(int64_t i) const noexcept {
        const int64_t at = first + i;
        return at / record_bytes * stride + place_of(blocks, at % record_bytes);
    }
};

struct Span {
    int64_t low, high;
};
Span span_of(const Part& part) noexcept {
    Span span{part.place(0), part.place(0) + 1};
    for (int64_t i = 1; i < part.bytes; ++i) {
        const int64_t place = part.place(i);
        span.low = std::min(span.low, place);
        span.high = std::max(span.high, place + 1);
    }
    return span;
}

size_t lines_of(const Part& part) noexcept {
    const Span span = span_of(part);
    return static_cast<size_t>(span.high - span.low + int64_t{register_bytes} - 1) / register_bytes;
}

// Does a byte of memory come twice? Then no table could say where it comes from.
bool has_overlap(const Part& part) noexcept {
    int64_t places[register_bytes];
    for (int64_t i = 0; i < part.bytes; ++i) places[i] = part.place(i);
    std::sort(places, places + part.bytes);
    return std::adjacent_find(places, places + part.bytes) != places + part.bytes;
}

// The window ends where the part does when records go down: what it covers beyond is then of
// records to come, as it is with records that go up.
void fill(const Part& part, size_t records, Permutation& tables) noexcept {
    const Span span = span_of(part);
    tables = {};
    tables.lines = lines_of(part);
    tables.records = records;
    tables.packed_offset = static_cast<size_t>(part.first);
    tables.packed_bytes = static_cast<size_t>(part.bytes);
    const auto window_bytes = static_cast<int64_t>(tables.lines * register_bytes);
    tables.window_offset = part.stride >= 0 ? span.low : span.high - window_bytes;
    for (int64_t i = 0; i < part.bytes; ++i) {
        const auto at = static_cast<size_t>(part.place(i) - tables.window_offset);
        const size_t line = at / register_bytes, in_line = at % register_bytes;
        tables.pack[line].index[i] = static_cast<uint8_t>(in_line);
        tables.pack[line].mask |= uint64_t{1} << i;
        tables.unpack[line].index[in_line] = static_cast<uint8_t>(i);
        tables.unpack[line].mask |= uint64_t{1} << in_line;
    }
}

// A window may reach past the last block of its group, never onto a page without any block: that
// page may not be mapped.
bool has_no_page_between(std::span<const Block> blocks, int64_t stride) noexcept {
    constexpr int64_t page_bytes = 4096;
    int64_t low = blocks[0].offset, high = low;
    for (const Block& block : blocks) {
        low = std::min(low, block.offset);
        high = std::max(high, block.offset + block.bytes);
    }
    const int64_t distance = stride < 0 ? -stride : stride;
    return high - low < page_bytes && distance - (high - low) < page_bytes;
}

int64_t bytes_of(std::span<const Block> blocks) noexcept {
    int64_t bytes = 0;
    for (const Block& block : blocks) bytes += block.bytes;
    return bytes;
}

// Loads and stores that a block takes by itself (strided_copy): pieces of 16, 32 or 64 bytes, and
// as many as the rest has bits.
size_t moves_of(std::span<const Block> blocks) noexcept {
    size_t moves = 0;
    for (const Block& block : blocks) {
        const auto bytes = static_cast<uint64_t>(block.bytes);
        const uint64_t piece = bytes >= 128 ? 64 : bytes > 32 ? 32 : 16;
        const uint64_t rest = piece == 16 ? bytes % piece : (bytes % piece + piece - 1) / piece;
        moves += bytes / piece + static_cast<uint64_t>(__builtin_popcountll(rest));
    }
    return moves;
}

// As many records as fit a register and a window; nothing where that gains nothing.
size_t records_of_group(std::span<const Block> blocks, int64_t stride, int64_t bytes) noexcept {
    for (int64_t records = int64_t{register_bytes} / bytes; records > 0; --records) {
        const size_t lines = lines_of({blocks, stride, bytes, 0, records * bytes});
        const size_t moves = static_cast<size_t>(records) * moves_of(blocks);
        if (lines <= most_lines && !has_overlap({blocks, stride, bytes, 0, records * bytes}) &&
            is_faster(Direction::pack, lines, moves))
            return static_cast<size_t>(records);
    }
    return 0;
}

}  // namespace

size_t make_permutations(std::span<const Block> blocks, int64_t stride,
                         Permutation* tables) noexcept {
    const int64_t bytes = bytes_of(blocks);
    if (bytes <= 0 || !has_no_page_between(blocks, stride)) return 0;
    if (bytes <= int64_t{register_bytes}) {
        const size_t records = records_of_group(blocks, stride, bytes);
        if (records == 0) return 0;
        if (tables != nullptr) {
            fill({blocks, stride, bytes, 0, static_cast<int64_t>(records) * bytes}, records,
                 *tables);
            tables->moves = records * moves_of(blocks);
        }
        return 1;
    }
    size_t parts = 0, lines = 0;
    for (int64_t first = 0; first < bytes; first += register_bytes, ++parts) {
        const Part part{blocks, stride, bytes, first,
                        std::min<int64_t>(bytes - first, register_bytes)};
        const size_t more = lines_of(part);
        if (more > most_lines || has_overlap(part)) return 0;
        lines += more;
        if (tables == nullptr) continue;
        fill(part, 1, tables[parts]);
        tables[parts].moves = moves_of(blocks) * register_bytes / static_cast<size_t>(bytes);
    }
    return is_faster(Direction::pack, lines, moves_of(blocks)) ? parts : 0;
}

// Unaligned registers cross lines of the cache: a store under a mask costs about what two or three
// small ones cost, a load and its permutation about one and a half.
bool is_faster(Direction direction, size_t lines, size_t moves) noexcept {
    return direction == Direction::pack ? 3 * lines < 2 * moves : 2 * lines < moves;
}

size_t groups_within(const Permutation& tables, int64_t stride, int64_t low, int64_t high,
                     size_t records) noexcept {
    if (records < tables.records) return 0;
    const size_t groups = records / tables.records;
    const auto window_bytes = static_cast<int64_t>(tables.lines * register_bytes);
    const auto last = static_cast<int64_t>(records - 1);
    const int64_t step = stride * static_cast<int64_t>(tables.records);
    // Only the far end can be passed: group g's window ends at g * step + window.
    const int64_t room = stride >= 0 ? last * stride + high - (tables.window_offset + window_bytes)
                                     : tables.window_offset - (last * stride + low);
    if (room < 0) return 0;
    if (step == 0) return groups;
    const int64_t distance = step > 0 ? step : -step;
    return std::min(groups, static_cast<size_t>(room / distance) + 1);
}

}  // namespace vecmpi::kernels
