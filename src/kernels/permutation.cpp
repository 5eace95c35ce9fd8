// SPDX-License-Identifier: BSD-3-Clause
// A record of at most half a register shares its group with others; a longer one is cut into parts
// of a register each.
#include "permutation.hpp"

#include <algorithm>
#include <bitset>
#include <cstring>

namespace vecmpi::kernels {
namespace {

// Where bytes [first, first + bytes) of the stream of records lie, relative to the first record.
struct Places {
    int64_t at[register_bytes];
    size_t bytes = 0;
};

// `first` lies within the first record.
Places places_of(std::span<const Block> blocks, int64_t stride, int64_t first,
                 size_t bytes) noexcept {
    Places places;
    size_t block = 0;
    int64_t record = 0;
    for (; places.bytes < bytes; ++first) {
        while (first >= blocks[block].bytes) {
            first -= blocks[block].bytes;
            if (++block < blocks.size()) continue;
            block = 0;
            record += stride;
        }
        places.at[places.bytes++] = record + blocks[block].offset + first;
    }
    return places;
}

struct Span {
    int64_t low, high;
};
Span span_of(const Places& places, size_t bytes) noexcept {
    const auto [low, high] = std::minmax_element(places.at, places.at + bytes);
    return {*low, *high + 1};
}

size_t lines_of(const Places& places, size_t bytes, size_t line_bytes) noexcept {
    const Span span = span_of(places, bytes);
    return (static_cast<size_t>(span.high - span.low) + line_bytes - 1) / line_bytes;
}

// How many bytes from the first on lie near each other, and none of them twice: a byte that came
// twice would need two sources.
size_t distinct_bytes(const Places& places) noexcept {
    constexpr int64_t most_distance = int64_t{most_lines * register_bytes};
    std::bitset<2 * most_distance> seen;  // by distance from the first, in both directions
    for (size_t i = 0; i < places.bytes; ++i) {
        const int64_t distance = places.at[i] - places.at[0];
        if (distance < -most_distance || distance >= most_distance) return i;
        const auto place = static_cast<size_t>(distance + most_distance);
        if (seen[place]) return i;
        seen[place] = true;
    }
    return places.bytes;
}

// Where records go down, the window ends where the part does. So what it covers beyond belongs to
// later records, as it does where records go up.
Window window_over(const Places& places, int64_t stride, size_t records,
                   size_t line_bytes) noexcept {
    const Span span = span_of(places, places.bytes);
    const auto bytes =
        static_cast<int64_t>(lines_of(places, places.bytes, line_bytes) * line_bytes);
    return {stride >= 0 ? span.low : span.high - bytes, bytes, records};
}

// `first`: where the places begin in the stream of the record.
void fill(const Places& places, size_t first, int64_t stride, size_t records,
          Permutation& tables) noexcept {
    const Window window = window_over(places, stride, records, register_bytes);
    tables = {};
    tables.lines = static_cast<size_t>(window.bytes) / register_bytes;
    tables.records = records;
    tables.packed_offset = first;
    tables.packed_bytes = places.bytes;
    tables.window_offset = window.offset;
    for (size_t i = 0; i < places.bytes; ++i) {
        const auto at = static_cast<size_t>(places.at[i] - window.offset);
        const size_t line = at / register_bytes, in_line = at % register_bytes;
        tables.pack[line].index[i] = static_cast<uint8_t>(in_line);
        tables.pack[line].mask |= uint64_t{1} << i;
        tables.unpack[line].index[in_line] = static_cast<uint8_t>(i);
        tables.unpack[line].mask |= uint64_t{1} << in_line;
    }
}

void fill(const Places& places, size_t first, int64_t stride, size_t records,
          Shuffle& tables) noexcept {
    const Window window = window_over(places, stride, records, short_register_bytes);
    std::memset(tables.index, Shuffle::elsewhere, sizeof tables.index);
    tables.lines = static_cast<size_t>(window.bytes) / short_register_bytes;
    tables.records = records;
    tables.packed_offset = first;
    tables.window_offset = window.offset;
    for (size_t i = 0; i < places.bytes; ++i) {
        const auto at = static_cast<size_t>(places.at[i] - window.offset);
        tables.index[at / short_register_bytes][i] =
            static_cast<uint8_t>(at % short_register_bytes);
    }
}

// A window may reach past the last block of its group, but never onto a page without any block:
// that page may not be mapped.
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

// Moves that strided_copy takes for the blocks: pieces of 16, 32 or 64 bytes, and as many as the
// rest has bits.
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

// A shuffle takes a load, a permutation and an OR for each line.
bool is_faster_shuffled(size_t lines, size_t moves) noexcept { return lines < moves; }

struct Registers {
    size_t bytes;
    bool are_stored_whole;  // the last part of a record too: it begins earlier
    bool (*is_faster)(size_t lines, size_t moves) noexcept;
};
constexpr Registers whole{register_bytes, false, [](size_t lines, size_t moves) noexcept {
                              return is_faster(Direction::pack, lines, moves);
                          }};
constexpr Registers short_ones{short_register_bytes, true, is_faster_shuffled};

size_t begin_of(size_t part, size_t bytes, const Registers& registers) noexcept {
    const size_t begin = part * registers.bytes;
    return registers.are_stored_whole ? std::min(begin, bytes - registers.bytes) : begin;
}

// As many records as fit a register and a window; 0 where that gains nothing.
size_t records_of_group(std::span<const Block> blocks, int64_t stride, size_t bytes,
                        const Registers& registers) noexcept {
    const Places places = places_of(blocks, stride, 0, registers.bytes / bytes * bytes);
    for (size_t records = distinct_bytes(places) / bytes; records > 0; --records) {
        const size_t lines = lines_of(places, records * bytes, registers.bytes);
        if (lines <= most_lines && registers.is_faster(lines, records * moves_of(blocks)))
            return records;
    }
    return 0;
}

PermutationChoice choose(std::span<const Block> blocks, int64_t stride,
                         const Registers& registers) noexcept {
    if (bytes_of(blocks) <= 0 || !has_no_page_between(blocks, stride)) return {};
    const auto bytes = static_cast<size_t>(bytes_of(blocks));
    if (bytes <= registers.bytes) {
        const size_t records = records_of_group(blocks, stride, bytes, registers);
        return records == 0 ? PermutationChoice{} : PermutationChoice{1, records};
    }
    const size_t parts = (bytes + registers.bytes - 1) / registers.bytes;
    size_t lines = 0;
    for (size_t part = 0; part < parts; ++part) {
        const size_t begin = begin_of(part, bytes, registers);
        const size_t rest = std::min(bytes - begin, registers.bytes);
        const Places places = places_of(blocks, stride, static_cast<int64_t>(begin), rest);
        const size_t more = lines_of(places, rest, registers.bytes);
        if (more > most_lines || distinct_bytes(places) < rest) return {};
        lines += more;
    }
    const bool gains = registers.is_faster(lines, moves_of(blocks));
    return gains ? PermutationChoice{parts, 1} : PermutationChoice{};
}

// Tables for a group of records, or for the parts of one.
template <class Tables>
void make(std::span<const Block> blocks, int64_t stride, const PermutationChoice& choice,
          const Registers& registers, Tables* tables) noexcept {
    const auto bytes = static_cast<size_t>(bytes_of(blocks));
    if (choice.number == 1)
        return fill(places_of(blocks, stride, 0, choice.records * bytes), 0, stride, choice.records,
                    *tables);
    for (size_t part = 0; part < choice.number; ++part) {
        const size_t begin = begin_of(part, bytes, registers);
        const size_t rest = std::min(bytes - begin, registers.bytes);
        fill(places_of(blocks, stride, static_cast<int64_t>(begin), rest), begin, stride, 1,
             tables[part]);
    }
}

}  // namespace

PermutationChoice choose_permutations(std::span<const Block> blocks, int64_t stride) noexcept {
    return choose(blocks, stride, whole);
}

PermutationChoice choose_shuffles(std::span<const Block> blocks, int64_t stride) noexcept {
    return choose(blocks, stride, short_ones);
}

void make_shuffles(std::span<const Block> blocks, int64_t stride, const PermutationChoice& choice,
                   Shuffle* tables) noexcept {
    make(blocks, stride, choice, short_ones, tables);
}

void make_permutations(std::span<const Block> blocks, int64_t stride,
                       const PermutationChoice& choice, Permutation* tables) noexcept {
    make(blocks, stride, choice, whole, tables);
    const auto bytes = static_cast<size_t>(bytes_of(blocks));
    const size_t moves = moves_of(blocks);
    for (size_t i = 0; i < choice.number; ++i)
        tables[i].moves =
            choice.number == 1 ? choice.records * moves : moves * register_bytes / bytes;
}

// Unaligned registers cross cache lines. So a masked store costs about as much as two or three
// small ones, and a load with its permutation about one and a half.
bool is_faster(Direction direction, size_t lines, size_t moves) noexcept {
    return direction == Direction::pack ? 3 * lines < 2 * moves : 2 * lines < moves;
}

size_t groups_within(const Window& window, int64_t stride, int64_t low, int64_t high,
                     size_t records) noexcept {
    if (records < window.records) return 0;
    const size_t groups = records / window.records;
    const auto last = static_cast<int64_t>(records - 1);
    const int64_t step = stride * static_cast<int64_t>(window.records);
    // A window can only pass the far end: group g's window ends at g * step + window.
    const int64_t room = stride >= 0 ? last * stride + high - (window.offset + window.bytes)
                                     : window.offset - (last * stride + low);
    if (room < 0) return 0;
    if (step == 0) return groups;
    // A window is eight lines at most, so few groups end beyond it: no division.
    const int64_t distance = step > 0 ? step : -step;
    size_t within = groups;
    while (static_cast<int64_t>(within - 1) * distance > room) --within;
    return within;
}

}  // namespace vecmpi::kernels
