// SPDX-License-Identifier: BSD-3-Clause
// Which kernel moves which layout, and the walk over the steps that it gives.
#include "plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace vecmpi::datatype {

namespace {

// Blocks of a record at most. More of them in a round are a table.
constexpr size_t most_blocks_of_record = 64;
// A row of more blocks than this, or of more bytes, is long enough for a loop of its own.
constexpr int64_t most_blocks_of_short_row = 8, most_bytes_of_short_row = 64;
// Columns that stand this close share lines of memory, if their blocks are this small. Smaller ones
// only where registers transpose them, and rows are so far apart that no permutation reaches two:
// else the second-level cache keeps the lines as well, of which each holds many columns (1448 x
// 1448 shorts, column by column 1.4 GB/s and line by line 0.5).
constexpr int64_t most_column_distance = 64, least_bytes_in_grid = 4, most_bytes_in_grid = 16;
constexpr int64_t least_distance_of_small_rows = 64;

bool is_short_row(const Layout& row) {
    return row.count <= most_blocks_of_short_row || row.bytes <= most_bytes_of_short_row;
}

bool is_table(const Layout& layout) {
    return layout.kind == Layout::Kind::blocks ||
           (layout.kind == Layout::Kind::places && layout.parts[0].kind == Layout::Kind::dense);
}

// Empty where a round is no record. One round of many blocks is a table: a record moves the same
// block of many rounds at a time.
std::vector<kernels::Block> blocks_of_record(const Layout& layout, int64_t rounds) {
    constexpr size_t few = 8;
    if (rounds == 1 && is_table(layout)) return blocks_of(layout, few);
    if (layout.kind == Layout::Kind::strided && !is_short_row(layout)) return {};
    return blocks_of(layout, most_blocks_of_record);
}

kernels::Grid grid_of(const Layout& layout, int64_t stride) {
    return {.columns = 0,
            .rows = static_cast<size_t>(layout.count),
            .column_stride = stride,
            .row_stride = layout.stride,
            .bytes = static_cast<size_t>(layout.parts[0].bytes)};
}

// A round is a row of single small blocks, far apart, and the next round's are beside them.
bool is_column(const Layout& layout, int64_t stride, kernels::Isa isa) {
    if (layout.kind != Layout::Kind::strided || layout.parts[0].kind != Layout::Kind::dense)
        return false;
    const int64_t bytes = layout.parts[0].bytes;
    if (bytes < least_bytes_in_grid &&
        (std::abs(layout.stride) < least_distance_of_small_rows ||
         !kernels::is_transposed_in_registers(grid_of(layout, stride), isa)))
        return false;
    return bytes <= most_bytes_in_grid && std::abs(stride) >= bytes &&
           std::abs(stride) <= most_column_distance &&
           std::abs(layout.stride) > 2 * std::abs(stride) && layout.count >= 4;
}

PackStep step_of(PackStep::Kind kind, int64_t bytes) {
    PackStep step;
    step.kind = kind;
    step.bytes = bytes;
    return step;
}

PackStep record_step(std::vector<kernels::Block> blocks, int64_t bytes, int64_t stride,
                     const kernels::PackLimits& limits, PlanRoom& room) {
    PackStep step = step_of(PackStep::Kind::records, bytes);
    if (room.is_exceeded) return step;
    step.records = std::make_unique<kernels::RecordCopier>(std::move(blocks), stride, limits);
    room.take(step.records->memory_bytes());
    return step;
}

PackStep table_step(const Layout& layout, const kernels::PackLimits& limits, PlanRoom& room) {
    PackStep step = step_of(PackStep::Kind::table, layout.bytes);
    step.offset = layout.offset;
    // Before it is made: a table may be as large as the description of a type.
    room.take(sizeof(kernels::TableCopier) + sizeof(int64_t) * layout.offsets.size() +
              2 * sizeof(int64_t) * (layout.blocks.size() + 1));
    if (room.is_exceeded) return step;
    if (layout.kind == Layout::Kind::blocks)
        step.table = std::make_unique<kernels::TableCopier>(layout.blocks, limits);
    else
        step.table = std::make_unique<kernels::TableCopier>(
            layout.offsets, static_cast<size_t>(layout.parts[0].bytes), limits);
    return step;
}

PackStep grid_step(const Layout& layout, int64_t stride) {
    PackStep step = step_of(PackStep::Kind::grid, layout.bytes);
    step.offset = layout.offset;
    step.column = grid_of(layout, stride);
    return step;
}

PackStep loop_step(const Layout& layout, const kernels::PackLimits& limits, PlanRoom& room) {
    PackStep step = step_of(PackStep::Kind::loop, layout.bytes);
    if (layout.kind == Layout::Kind::sequence) {
        step.offset = layout.offset;
        step.parts.reserve(layout.parts.size());
        for (const Layout& part : layout.parts) {
            if (room.is_exceeded) break;
            step.parts.push_back(plan_layout(part, limits, room));
        }
    } else {
        step.parts.push_back(plan_layout(layout, limits, room));
    }
    return step;
}

PackStep places_step(const Layout& layout, const kernels::PackLimits& limits, PlanRoom& room) {
    PackStep step = step_of(PackStep::Kind::places, layout.bytes);
    step.offset = layout.offset;
    room.take(sizeof(int64_t) * layout.offsets.size());
    if (room.is_exceeded) return step;
    step.offsets = layout.offsets;
    step.parts.push_back(plan_layout(layout.parts[0], limits, room));
    return step;
}

// What one round is.
PackStep round_of(const Layout& layout, int64_t rounds, int64_t stride,
                  const kernels::PackLimits& limits, PlanRoom& room) {
    if (layout.kind == Layout::Kind::empty) return {};
    if (layout.kind == Layout::Kind::dense && stride == layout.bytes) {
        PackStep step = step_of(PackStep::Kind::dense, layout.bytes);
        step.offset = layout.offset;
        return step;
    }
    if (limits.any_way && is_column(layout, stride, limits.isa) &&
        kernels::is_chosen(limits, PackKernel::columns, layout.parts[0].bytes,
                           std::abs(layout.stride), true))
        return grid_step(layout, stride);
    if (std::vector<kernels::Block> blocks = blocks_of_record(layout, rounds); !blocks.empty())
        return record_step(std::move(blocks), layout.bytes, stride, limits, room);
    if (is_table(layout)) return table_step(layout, limits, room);
    if (layout.kind == Layout::Kind::places) return places_step(layout, limits, room);
    return loop_step(layout, limits, room);
}

}  // namespace

PackStep plan_rounds(const Layout& layout, int64_t rounds, int64_t stride,
                     const kernels::PackLimits& limits, PlanRoom& room) {
    room.take(sizeof(PackStep));
    PackStep step = round_of(layout, rounds, stride, limits, room);
    step.rounds = rounds;
    step.stride = stride;
    return step;
}

PackStep plan_layout(const Layout& layout, const kernels::PackLimits& limits, PlanRoom& room) {
    if (layout.kind == Layout::Kind::strided) {
        PackStep step = plan_rounds(layout.parts[0], layout.count, layout.stride, limits, room);
        step.offset += layout.offset;
        return step;
    }
    const Bounds bounds = bounds_of(layout);
    return plan_rounds(layout, 1, bounds.high - bounds.low, limits, room);
}

PackStep plan_copies(const Layout& layout, int64_t extent, const kernels::PackLimits& limits,
                     PlanRoom& room) {
    constexpr int64_t any_number = 2;
    const bool continues =
        layout.kind == Layout::Kind::strided && extent == layout.count * layout.stride;
    if (continues) return plan_layout(layout, limits, room);
    PackStep step = plan_rounds(layout, any_number, extent, limits, room);
    step.rounds = 1;
    return step;
}

// ---- the walk ----------------------------------------------------------------------------------

namespace {

void copy_flat(kernels::Direction direction, char* packed, char* memory, int64_t bytes) noexcept {
    const bool packing = direction == kernels::Direction::pack;
    kernels::copy_bytes(packing ? packed : memory, packing ? memory : packed,
                        static_cast<size_t>(bytes));
}

// Of consecutive pieces, each `bytes_of(i)` of the stream, those within [first, first + bytes).
template <class BytesOf, class Copy>
void clipped(size_t pieces, int64_t first, int64_t bytes, const BytesOf& bytes_of,
             const Copy& copy) noexcept {
    for (size_t i = 0; i < pieces && bytes > 0; ++i) {
        const int64_t whole = bytes_of(i);
        if (first >= whole) {
            first -= whole;
            continue;
        }
        const int64_t part = std::min(whole - first, bytes);
        copy(i, first, part);
        first = 0;
        bytes -= part;
    }
}

// Bytes [first, first + bytes) of one round, which stands at `memory`.
void carry_out_part(const PackStep& step, const Movement& movement, char* packed, char* memory,
                    int64_t first, int64_t bytes) noexcept {
    const kernels::Direction direction = movement.direction;
    const auto next = [&packed](int64_t part) { return std::exchange(packed, packed + part); };
    switch (step.kind) {
        case PackStep::Kind::dense:
            return copy_flat(direction, packed, memory + first, bytes);
        case PackStep::Kind::records: {
            const std::vector<kernels::Block>& blocks = step.records->blocks();
            return clipped(
                blocks.size(), first, bytes, [&](size_t i) { return blocks[i].bytes; },
                [&](size_t i, int64_t from, int64_t part) {
                    copy_flat(direction, next(part), memory + blocks[i].offset + from, part);
                });
        }
        case PackStep::Kind::table:
            return step.table->copy(direction, packed, memory, static_cast<size_t>(first),
                                    static_cast<size_t>(bytes));
        case PackStep::Kind::grid: {
            const auto block = static_cast<int64_t>(step.column.bytes);
            memory += first / block * step.column.row_stride;
            return clipped(
                step.column.rows, first % block, bytes, [&](size_t) { return block; },
                [&](size_t i, int64_t from, int64_t part) {
                    copy_flat(direction, next(part),
                              memory + static_cast<int64_t>(i) * step.column.row_stride + from,
                              part);
                });
        }
        case PackStep::Kind::places: {
            const PackStep& part_step = step.parts[0];
            const int64_t whole = part_step.bytes * part_step.rounds;
            const int64_t skipped = first / whole;
            const int64_t* const offsets = step.offsets.data() + skipped;
            return clipped(
                step.offsets.size() - static_cast<size_t>(skipped), first % whole, bytes,
                [&](size_t) { return whole; },
                [&](size_t i, int64_t from, int64_t part) {
                    carry_out(part_step, movement, next(part), memory + offsets[i],
                              part_step.rounds, from, part);
                });
        }
        case PackStep::Kind::loop:
            return clipped(
                step.parts.size(), first, bytes,
                [&](size_t i) { return step.parts[i].bytes * step.parts[i].rounds; },
                [&](size_t i, int64_t from, int64_t part) {
                    carry_out(step.parts[i], movement, next(part), memory, step.parts[i].rounds,
                              from, part);
                });
    }
}

void carry_out_rounds(const PackStep& step, const Movement& movement, char* packed, char* memory,
                      int64_t rounds) noexcept {
    const auto number = static_cast<size_t>(rounds);
    switch (step.kind) {
        case PackStep::Kind::dense:
            return copy_flat(movement.direction, packed, memory, rounds * step.bytes);
        case PackStep::Kind::records:
            return step.records->copy(movement.direction, packed, memory, number);
        case PackStep::Kind::loop:
            if (step.parts.size() == 1 && step.parts[0].kind == PackStep::Kind::records) {
                const PackStep& row = step.parts[0];
                return row.records->copy_rows(movement.direction, packed, memory + row.offset,
                                              static_cast<size_t>(row.rounds), number, step.stride);
            }
            break;
        case PackStep::Kind::grid: {
            kernels::Grid grid = step.column;
            grid.columns = number;
            return kernels::copy_grid(movement.direction, packed, memory, grid, movement.isa);
        }
        default:
            break;
    }
    for (int64_t round = 0; round < rounds; ++round) {
        carry_out_part(step, movement, packed, memory, 0, step.bytes);
        packed += step.bytes;
        memory += step.stride;
    }
}

}  // namespace

// 1. What is left of a round that begins before. 2. Whole rounds. 3. The beginning of one.
void carry_out(const PackStep& step, const Movement& movement, char* packed, char* memory,
               int64_t rounds, int64_t first, int64_t bytes) noexcept {
    if (bytes == 0) return;
    memory += step.offset;
    const bool is_whole = first == 0 && bytes == rounds * step.bytes;
    if (is_whole) return carry_out_rounds(step, movement, packed, memory, rounds);
    int64_t round = first / step.bytes;
    if (const int64_t begun = first % step.bytes; begun != 0) {  // 1
        const int64_t rest = std::min(step.bytes - begun, bytes);
        carry_out_part(step, movement, packed, memory + round * step.stride, begun, rest);
        packed += rest;
        bytes -= rest;
        ++round;
    }
    const int64_t whole = bytes / step.bytes;  // 2
    if (whole != 0) carry_out_rounds(step, movement, packed, memory + round * step.stride, whole);
    const int64_t rest = bytes % step.bytes;  // 3
    if (rest != 0)
        carry_out_part(step, movement, packed + whole * step.bytes,
                       memory + (round + whole) * step.stride, 0, rest);
}

MovedBy moved_by(const PackStep& step, kernels::Direction direction) noexcept {
    const auto by_way = [](kernels::PackWay way) {
        if (way == kernels::PackWay::permute) return MovedBy::permutes;
        return way == kernels::PackWay::gather ? MovedBy::gathers : MovedBy::blocks;
    };
    switch (step.kind) {
        case PackStep::Kind::records:
            return by_way(step.records->way(direction));
        case PackStep::Kind::table:
            return by_way(step.table->way(direction));
        case PackStep::Kind::grid:
            return MovedBy::transposes;
        case PackStep::Kind::loop:
        case PackStep::Kind::places: {
            const auto larger = [](const PackStep& left, const PackStep& right) {
                return left.bytes * left.rounds < right.bytes * right.rounds;
            };
            return moved_by(*std::max_element(step.parts.begin(), step.parts.end(), larger),
                            direction);
        }
        case PackStep::Kind::dense:
            break;
    }
    return MovedBy::blocks;
}

}  // namespace vecmpi::datatype
