// SPDX-License-Identifier: BSD-3-Clause
// The copiers of scattered blocks against a loop over bytes. Memory and stream end, or begin, where
// a page begins that may be neither read nor written.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "battery.hpp"

namespace battery {
namespace {

using vecmpi::kernels::Block;
using vecmpi::kernels::Direction;
using vecmpi::kernels::Isa;
using vecmpi::kernels::PackLimits;
using vecmpi::kernels::PackWay;

using Random = std::mt19937_64;
constexpr size_t page = 4096;

size_t whole_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

// Memory with forbidden pages around, mapped anew only where it is too small: emulated, mapping is
// slow.
class Fenced {
  public:
    Fenced() = default;
    ~Fenced() { unmap(); }
    Fenced(const Fenced&) = delete;
    Fenced& operator=(const Fenced&) = delete;
    // `bytes` bytes against the end of it or against the beginning. Whoever asked before has no
    // more.
    char* place(size_t bytes, bool at_end) {
        if (bytes > inner_) {
            unmap();
            inner_ = whole_pages(bytes);
            base_ = static_cast<char*>(
                mmap(nullptr, inner_ + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
            mprotect(base_ + page, inner_, PROT_READ | PROT_WRITE);
        }
        return base_ + page + (at_end ? inner_ - bytes : 0);
    }

  private:
    void unmap() {
        if (base_ != nullptr) munmap(base_, inner_ + 2 * page);
    }
    size_t inner_ = 0;
    char* base_ = nullptr;
};

// Where each byte of the stream lies, from an origin.
using Places = std::vector<int64_t>;
using Copy = std::function<void(Direction direction, char* packed, char* memory)>;

void fill(Random& random, char* bytes, size_t count) {
    for (; count >= sizeof(uint64_t); bytes += sizeof(uint64_t), count -= sizeof(uint64_t)) {
        const uint64_t word = random();
        std::memcpy(bytes, &word, sizeof word);
    }
    for (; count > 0; --count) *bytes++ = static_cast<char>(random());
}

class Checks {
  public:
    Checks(uint64_t seed, bool quick) : random_(seed), quick_(quick) {}
    void add(const std::string& what, const Places& places, const Copy& copy) {
        for (const bool at_end : {false, true}) {
            const bool right = moves_rightly(places, at_end, copy);
            (right ? tally.passed : tally.failed) += 1;
            if (!right && tally.failed < 20) tally.complaints += "  " + what + "\n";
        }
    }
    Random& random() { return random_; }
    bool quick() const { return quick_; }
    int64_t draw(int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random_);
    }
    Tally tally;

  private:
    bool moves_rightly(const Places& places, bool at_end, const Copy& copy);
    Random random_;
    bool quick_;
    Fenced memory_, stream_;
};

// Both directions: the bytes of the blocks, and nothing else.
bool Checks::moves_rightly(const Places& places, bool at_end, const Copy& copy) {
    if (places.empty()) {
        copy(Direction::pack, nullptr, nullptr);
        copy(Direction::unpack, nullptr, nullptr);
        return true;
    }
    const auto [low, high] = std::minmax_element(places.begin(), places.end());
    const auto span = static_cast<size_t>(*high - *low + 1);
    char* const memory = memory_.place(span, at_end);
    char* const stream = stream_.place(places.size(), at_end);
    char* const origin = memory - *low;
    fill(random_, memory, span);
    std::vector<char> expected(memory, memory + span);
    copy(Direction::pack, stream, origin);
    for (size_t i = 0; i < places.size(); ++i)
        if (stream[i] != origin[places[i]]) return false;
    if (!std::equal(expected.begin(), expected.end(), memory)) return false;
    fill(random_, stream, places.size());
    for (size_t i = 0; i < places.size(); ++i)
        expected[static_cast<size_t>(places[i] - *low)] = stream[i];
    const std::vector<char> before(stream, stream + places.size());
    copy(Direction::unpack, stream, origin);
    return std::equal(expected.begin(), expected.end(), memory) &&
           std::equal(before.begin(), before.end(), stream);
}

Places places_of(const std::vector<Block>& blocks, int64_t at) {
    Places places;
    for (const Block& block : blocks)
        for (int64_t i = 0; i < block.bytes; ++i) places.push_back(at + block.offset + i);
    return places;
}

const PackLimits all_limits(Isa isa, int way) {
    PackLimits limits;
    limits.isa = isa;
    limits.any_way = way < 0;
    if (way >= 0) limits.only = static_cast<PackWay>(way);
    return limits;
}

void check_records(Checks& checks, Isa isa, const std::vector<Block>& blocks, int64_t stride) {
    for (int way = -1; way < static_cast<int>(vecmpi::kernels::number_of_pack_ways); ++way) {
        const vecmpi::kernels::RecordCopier copier(blocks, stride, all_limits(isa, way));
        const auto group = static_cast<int64_t>(std::max<size_t>(64 / copier.packed_bytes(), 1));
        for (const int64_t count :
             {int64_t{0}, int64_t{1}, group - 1, group, group + 1, 4 * group + 3, 9 * group + 5}) {
            Places places;
            for (int64_t i = 0; i < count; ++i)
                for (const int64_t place : places_of(blocks, i * stride)) places.push_back(place);
            checks.add("records of " + std::to_string(blocks.size()) + " blocks, stride " +
                           std::to_string(stride) + ", count " + std::to_string(count),
                       places, [&](Direction direction, char* packed, char* memory) {
                           copier.copy(direction, packed, memory, static_cast<size_t>(count));
                       });
        }
    }
}

void check_strides(Checks& checks, Isa isa) {
    for (int64_t bytes = 1; bytes <= 64; bytes += bytes < 20 || !checks.quick() ? 1 : 11)
        for (const int64_t gap : {1, 3, 4, 8, 16, 61, 900})
            for (const int64_t sign : {1, -1})
                check_records(checks, isa, {{checks.draw(-9, 9), bytes}}, sign * (bytes + gap));
    for (const int64_t bytes : {65, 80, 127, 200, 1000, 5000})
        check_records(checks, isa, {{0, bytes}}, bytes + 24);
}

// Every rest of the loops that move several blocks at a time, at distances of any parity.
void check_counts(Checks& checks, Isa isa) {
    for (const int64_t bytes : {2, 4, 8, 12, 16, 24, 40, 72, 96, 300})
        for (const int64_t stride : {bytes + 1, 2 * bytes, -(bytes + 3)}) {
            const vecmpi::kernels::RecordCopier copier({{0, bytes}}, stride, all_limits(isa, -1));
            for (int64_t count = 0; count <= 70; count += checks.quick() && bytes > 24 ? 7 : 1) {
                Places places;
                for (int64_t i = 0; i < count; ++i)
                    for (const int64_t place : places_of({{0, bytes}}, i * stride))
                        places.push_back(place);
                checks.add(std::to_string(count) + " blocks of " + std::to_string(bytes), places,
                           [&](Direction direction, char* packed, char* memory) {
                               copier.copy(direction, packed, memory, static_cast<size_t>(count));
                           });
            }
        }
}

void check_structs(Checks& checks, Isa isa) {
    check_records(checks, isa, {{0, 4}, {8, 8}}, 16);
    check_records(checks, isa, {{0, 4}, {8, 8}}, -16);
    check_records(checks, isa, {{8, 8}, {0, 4}}, 40);
    for (int i = checks.quick() ? 30 : 300; i > 0; --i) {
        std::vector<Block> blocks;
        int64_t end = checks.draw(-40, 40);
        for (int64_t left = checks.draw(2, 12); left > 0; --left) {
            blocks.push_back({end, checks.draw(1, left % 5 == 0 ? 40 : 9)});
            end += blocks.back().bytes + checks.draw(0, checks.draw(0, 9) == 0 ? 700 : 12);
        }
        if (checks.draw(0, 3) == 0) std::shuffle(blocks.begin(), blocks.end(), checks.random());
        int64_t low = blocks[0].offset;
        for (const Block& block : blocks) low = std::min(low, block.offset);
        const int64_t sign = checks.draw(0, 3) == 0 ? -1 : 1;
        check_records(checks, isa, blocks, sign * (end - low + checks.draw(0, 30)));
    }
}

void check_rows(Checks& checks, Isa isa) {
    const std::vector<std::vector<Block>> shapes = {{{0, 4}}, {{0, 8}}, {{3, 1}}, {{0, 4}, {8, 8}}};
    for (const std::vector<Block>& blocks : shapes)
        for (const int64_t stride : {16, -16, 24})
            for (const int64_t records : {1, 5, 16, 40})
                for (const int64_t gap : {0, 40, 5000})
                    for (const int64_t rows : {0, 1, 2, 5}) {
                        const int64_t sign = checks.draw(0, 1) == 0 ? 1 : -1;
                        const int64_t row_stride = sign * (24 * records + gap);
                        Places places;
                        for (int64_t row = 0; row < rows; ++row)
                            for (int64_t i = 0; i < records; ++i)
                                for (const int64_t place :
                                     places_of(blocks, row * row_stride + i * stride))
                                    places.push_back(place);
                        const vecmpi::kernels::RecordCopier copier(blocks, stride,
                                                                   all_limits(isa, -1));
                        checks.add("rows", places,
                                   [&](Direction direction, char* packed, char* memory) {
                                       copier.copy_rows(direction, packed, memory,
                                                        static_cast<size_t>(records),
                                                        static_cast<size_t>(rows), row_stride);
                                   });
                    }
}

// Rows that begin within each other's first bytes, as columns side by side do.
void check_interleaved_rows(Checks& checks, Isa isa) {
    for (const int64_t block : {1, 4, 8, 16, 24})
        for (const int64_t rows : {2, 3, 4})
            for (const int64_t records : {1, 2, 10, 30, 100})
                for (const int64_t sign : {1, -1}) {
                    const int64_t stride = sign * block * rows, row_stride = sign * block;
                    Places places;
                    for (int64_t row = 0; row < rows; ++row)
                        for (int64_t i = 0; i < records; ++i)
                            for (const int64_t place :
                                 places_of({{0, block}}, row * row_stride + i * stride))
                                places.push_back(place);
                    const vecmpi::kernels::RecordCopier copier({{0, block}}, stride,
                                                               all_limits(isa, -1));
                    checks.add("interleaved rows", places,
                               [&](Direction direction, char* packed, char* memory) {
                                   copier.copy_rows(direction, packed, memory,
                                                    static_cast<size_t>(records),
                                                    static_cast<size_t>(rows), row_stride);
                               });
                }
}

void check_tables(Checks& checks, Isa isa) {
    for (int i = checks.quick() ? 60 : 600; i > 0; --i) {
        constexpr int64_t lengths[] = {1, 2, 3, 4, 7, 8, 12, 16, 24, 64, 65, 300};
        const int64_t fixed = i % 3 == 0 ? 0 : lengths[checks.draw(0, 11)];
        std::vector<Block> blocks;
        std::vector<int64_t> offsets;
        int64_t end = checks.draw(-40, 40);
        const bool is_long = i % 12 == 0;  // several tiles, of short blocks
        for (int64_t left = checks.draw(1, is_long ? 700 : 70); left > 0; --left) {
            blocks.push_back({end, fixed != 0 ? fixed : checks.draw(1, is_long ? 40 : 150)});
            end += blocks.back().bytes + checks.draw(0, 30);
        }
        if (checks.draw(0, 1) == 0) std::shuffle(blocks.begin(), blocks.end(), checks.random());
        for (const Block& block : blocks) offsets.push_back(block.offset);
        const Places places = places_of(blocks, 0);
        for (int way = -1; way < static_cast<int>(vecmpi::kernels::number_of_pack_ways); ++way) {
            const PackLimits limits = all_limits(isa, way);
            const vecmpi::kernels::TableCopier copier =
                fixed != 0
                    ? vecmpi::kernels::TableCopier(offsets, static_cast<size_t>(fixed), limits)
                    : vecmpi::kernels::TableCopier(blocks, limits);
            const size_t bytes = places.size();
            const auto first = static_cast<size_t>(checks.draw(0, static_cast<int64_t>(bytes)));
            checks.add("table", places, [&](Direction direction, char* packed, char* memory) {
                copier.copy(direction, packed, memory, 0, bytes);
            });
            checks.add("parts of a table", places,
                       [&](Direction direction, char* packed, char* memory) {
                           if (first != 0) copier.copy(direction, packed, memory, 0, first);
                           if (first != bytes)
                               copier.copy(direction, packed + first, memory, first, bytes - first);
                       });
        }
    }
}

// In no order, over so much memory that windows of the table are sorted.
void check_scattered_tables(Checks& checks, Isa isa) {
    using vecmpi::kernels::TableCopier;
    for (const size_t count :
         {TableCopier::blocks_of_window - 3, 2 * TableCopier::blocks_of_window + 5})
        for (const int64_t bytes : {4, 8, 16, 24}) {
            std::vector<Block> blocks;
            std::vector<int64_t> offsets;
            const auto apart = static_cast<int64_t>((20 << 20) / count);
            for (size_t i = 0; i < count; ++i)
                blocks.push_back(
                    {static_cast<int64_t>(i) * apart + checks.draw(0, apart - bytes), bytes});
            std::shuffle(blocks.begin(), blocks.end(), checks.random());
            for (const Block& block : blocks) offsets.push_back(block.offset);
            const TableCopier copier(offsets, static_cast<size_t>(bytes), all_limits(isa, -1));
            const Places places = places_of(blocks, 0);
            const size_t all = places.size();
            const auto first = static_cast<size_t>(checks.draw(1, static_cast<int64_t>(all) - 1));
            checks.add("scattered table", places,
                       [&](Direction direction, char* packed, char* memory) {
                           copier.copy(direction, packed, memory, 0, all);
                       });
            checks.add("parts of a scattered table", places,
                       [&](Direction direction, char* packed, char* memory) {
                           copier.copy(direction, packed, memory, 0, first);
                           copier.copy(direction, packed + first, memory, first, all - first);
                       });
        }
}

void check_grid(Checks& checks, Isa isa, const vecmpi::kernels::Grid& grid) {
    Places places;
    for (size_t c = 0; c < grid.columns; ++c)
        for (size_t r = 0; r < grid.rows; ++r) {
            const int64_t at = static_cast<int64_t>(c) * grid.column_stride +
                               static_cast<int64_t>(r) * grid.row_stride;
            for (size_t i = 0; i < grid.bytes; ++i) places.push_back(at + static_cast<int64_t>(i));
        }
    checks.add("columns", places, [&](Direction direction, char* packed, char* memory) {
        vecmpi::kernels::copy_grid(direction, packed, memory, grid, isa);
    });
}

void check_grids(Checks& checks, Isa isa) {
    for (const size_t bytes : {1, 2, 4, 5, 8, 16})
        for (const size_t rows : {1, 7, 8, 15, 16, 17, 35, 67})
            for (const size_t columns : {0, 1, 7, 8, 9, 16, 19, 67})
                for (const int64_t gap : {0, 3}) {
                    const int64_t column = static_cast<int64_t>(bytes) + gap;
                    const int64_t row = static_cast<int64_t>(columns) * column + checks.draw(0, 70);
                    const int64_t sign = checks.draw(0, 4) == 0 ? -1 : 1;
                    check_grid(checks, isa, {columns, rows, column, sign * row, bytes});
                    if (checks.draw(0, 4) == 0)
                        check_grid(checks, isa, {columns, rows, -column, row, bytes});
                }
    if (checks.quick()) return;
    // More than a second-level cache holds, rows on different lines of it and on the same.
    for (const int64_t row : {530 * 8 + 40, 5 * 1024, -530 * 8})
        check_grid(checks, isa, {530, 620, 8, row, 8});
}

// Values of every width, by themselves and behind `skipped` bytes: from place to place, and within
// the bytes that were copied before.
void check_reversal(Checks& checks, Isa isa, size_t width, size_t bytes, size_t skipped) {
    using vecmpi::kernels::reverse_bytes;
    Places places;
    for (size_t i = 0; i < skipped; ++i) places.push_back(static_cast<int64_t>(i));
    for (size_t value = 0; value < bytes; value += width)
        for (size_t i = width; i-- > 0;)
            places.push_back(static_cast<int64_t>(skipped + value + i));
    const std::string what = std::to_string(bytes) + " bytes, reversed by " +
                             std::to_string(width) + " behind " + std::to_string(skipped);
    const auto ends_of = [](Direction direction, char* packed, char* memory) {
        return direction == Direction::pack ? std::pair(packed, memory) : std::pair(memory, packed);
    };
    checks.add(what, places, [&](Direction direction, char* packed, char* memory) {
        const auto [to, from] = ends_of(direction, packed, memory);
        if (skipped != 0) std::memcpy(to, from, skipped);
        reverse_bytes(to + skipped, from + skipped, bytes, width, isa);
    });
    checks.add(what + " in place", places, [&](Direction direction, char* packed, char* memory) {
        const auto [to, from] = ends_of(direction, packed, memory);
        if (!places.empty()) std::memcpy(to, from, places.size());
        reverse_bytes(to + skipped, to + skipped, bytes, width, isa);
    });
}

void check_reversals(Checks& checks, Isa isa) {
    for (const size_t width : {2, 4, 8, 16})
        for (const size_t skipped : {0, 1, 3}) {
            for (size_t bytes = 0; bytes <= 200; bytes += width)
                check_reversal(checks, isa, width, bytes, skipped);
            for (const size_t values : {64, 127, 300, 1025})
                check_reversal(checks, isa, width, values * width, skipped);
        }
}

// Each record ends where a page ends, and the pages between records may not be touched.
void check_pages_between(Checks& checks, Isa isa) {
    constexpr size_t records = 6, apart = 3 * page;
    const std::vector<std::vector<Block>> shapes = {
        {{-16, 4}, {-8, 8}},
        {{-60, 3}, {-50, 2}, {-40, 1}, {-30, 7}, {-20, 20}},
        {{-4, 4}},
        {{-12, 12}},
        {{-24, 24}}};
    char* const base = static_cast<char*>(
        mmap(nullptr, records * apart, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < records; ++i) mprotect(base + i * apart, page, PROT_READ | PROT_WRITE);
    for (const std::vector<Block>& blocks : shapes)
        for (const int64_t sign : {1, -1}) {
            const auto stride = sign * static_cast<int64_t>(apart);
            char* const first = base + page + (sign < 0 ? (records - 1) * apart : 0);
            const vecmpi::kernels::RecordCopier copier(blocks, stride, all_limits(isa, -1));
            std::vector<char> stream(records * copier.packed_bytes()), again(stream.size());
            std::vector<char> expected(records * page), image(expected.size());
            fill(checks.random(), stream.data(), stream.size());
            for (size_t i = 0; i < records; ++i) {
                fill(checks.random(), base + i * apart, page);
                std::copy_n(base + i * apart, page, expected.data() + i * page);
            }
            const char* in_stream = stream.data();  // the twin: byte by byte
            for (size_t i = 0; i < records; ++i)
                for (const int64_t place : places_of(blocks, static_cast<int64_t>(page)))
                    expected[(sign < 0 ? records - 1 - i : i) * page + static_cast<size_t>(place)] =
                        *in_stream++;
            copier.copy(Direction::unpack, stream.data(), first, records);
            for (size_t i = 0; i < records; ++i)
                std::copy_n(base + i * apart, page, image.data() + i * page);
            copier.copy(Direction::pack, again.data(), first, records);
            const bool right = image == expected && again == stream;
            (right ? checks.tally.passed : checks.tally.failed) += 1;
        }
    munmap(base, records * apart);
}

}  // namespace

Tally check_blocks(Isa isa, const Options& options) {
    Checks checks(options.seed, options.quick);
    check_strides(checks, isa);
    check_counts(checks, isa);
    check_structs(checks, isa);
    check_rows(checks, isa);
    check_interleaved_rows(checks, isa);
    check_tables(checks, isa);
    if (!checks.quick()) check_scattered_tables(checks, isa);
    check_grids(checks, isa);
    check_reversals(checks, isa);
    check_pages_between(checks, isa);
    return checks.tally;
}

}  // namespace battery
