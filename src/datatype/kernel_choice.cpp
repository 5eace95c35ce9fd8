// SPDX-License-Identifier: BSD-3-Clause
#include "kernel_choice.hpp"

#include <cstdlib>
#include <utility>

namespace vecmpi::datatype {

namespace {

// A round of more blocks is a table.
constexpr size_t most_blocks_of_record = 64;
// A row of more blocks and more bytes than these gets a loop of its own.
constexpr int64_t most_blocks_of_short_row = 8, most_bytes_of_short_row = 64;
// A grid moves columns whose blocks share lines of memory: they are this close and this small.
// Blocks below least_bytes_in_grid are moved so only under two conditions. Registers must transpose
// them. Rows must be so far apart that no permutation reaches two. Else the second-level cache
// keeps the lines as well, since each holds many columns: 1448 x 1448 shorts reach 1.4 GB/s column
// by column, and 0.5 as a grid.
constexpr int64_t most_column_distance = 64, least_bytes_in_grid = 4, most_bytes_in_grid = 16;
constexpr int64_t least_distance_of_small_rows = 64;

bool is_short_row(const TypeMap& row) {
    return row.count <= most_blocks_of_short_row || row.bytes <= most_bytes_of_short_row;
}

bool is_table(const TypeMap& map) {
    return map.kind == TypeMap::Kind::blocks ||
           (map.kind == TypeMap::Kind::places && map.parts[0].kind == TypeMap::Kind::dense);
}

// Empty where a round is no record. A record moves the same block of many rounds at a time, so a
// single round of many blocks is a table.
std::vector<kernels::Block> blocks_of_record(const TypeMap& map, int64_t rounds) {
    constexpr size_t few = 8;
    if (rounds == 1 && is_table(map)) return blocks_of(map, few);
    if (map.kind == TypeMap::Kind::strided && !is_short_row(map)) return {};
    return blocks_of(map, most_blocks_of_record);
}

kernels::Grid grid_of(const TypeMap& map, int64_t stride) {
    return {.columns = 0,
            .rows = static_cast<size_t>(map.count),
            .column_stride = stride,
            .row_stride = map.stride,
            .bytes = static_cast<size_t>(map.parts[0].bytes)};
}

// A round is a row of single small blocks, far apart, and the next round's lie close to them.
bool is_column(const TypeMap& map, int64_t stride, kernels::Isa isa) {
    if (map.kind != TypeMap::Kind::strided || map.parts[0].kind != TypeMap::Kind::dense)
        return false;
    const int64_t bytes = map.parts[0].bytes;
    if (bytes < least_bytes_in_grid &&
        (std::abs(map.stride) < least_distance_of_small_rows ||
         !kernels::is_transposed_in_registers(grid_of(map, stride), isa)))
        return false;
    return bytes <= most_bytes_in_grid && std::abs(stride) >= bytes &&
           std::abs(stride) <= most_column_distance &&
           std::abs(map.stride) > 2 * std::abs(stride) && map.count >= 4;
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

PackStep table_step(const TypeMap& map, const kernels::PackLimits& limits, PlanRoom& room) {
    PackStep step = step_of(PackStep::Kind::table, map.bytes);
    step.offset = map.offset;
    // Asked before it is made, since a table may be as large as the description of a type.
    room.take(
        sizeof(kernels::TableCopier) + (sizeof(int64_t) + sizeof(uint16_t)) * map.offsets.size() +
        2 * sizeof(int64_t) * (map.blocks.size() + 1) +
        sizeof(kernels::LengthTile) * (map.blocks.size() / kernels::LengthTile::most_blocks + 1));
    if (room.is_exceeded) return step;
    if (map.kind == TypeMap::Kind::blocks)
        step.table = std::make_unique<kernels::TableCopier>(map.blocks, limits);
    else
        step.table = std::make_unique<kernels::TableCopier>(
            map.offsets, static_cast<size_t>(map.parts[0].bytes), limits);
    return step;
}

PackStep grid_step(const TypeMap& map, int64_t stride) {
    PackStep step = step_of(PackStep::Kind::grid, map.bytes);
    step.offset = map.offset;
    step.column = grid_of(map, stride);
    return step;
}

PackStep loop_step(const TypeMap& map, const kernels::PackLimits& limits, PlanRoom& room) {
    PackStep step = step_of(PackStep::Kind::loop, map.bytes);
    if (map.kind == TypeMap::Kind::sequence) {
        step.offset = map.offset;
        step.parts.reserve(map.parts.size());
        for (const TypeMap& part : map.parts) {
            if (room.is_exceeded) break;
            step.parts.push_back(plan_once(part, limits, room));
        }
    } else {
        step.parts.push_back(plan_once(map, limits, room));
    }
    return step;
}

PackStep places_step(const TypeMap& map, const kernels::PackLimits& limits, PlanRoom& room) {
    PackStep step = step_of(PackStep::Kind::places, map.bytes);
    step.offset = map.offset;
    room.take(sizeof(int64_t) * map.offsets.size());
    if (room.is_exceeded) return step;
    step.offsets = map.offsets;
    step.parts.push_back(plan_once(map.parts[0], limits, room));
    return step;
}

// The step of one round.
PackStep round_of(const TypeMap& map, int64_t rounds, int64_t stride,
                  const kernels::PackLimits& limits, PlanRoom& room) {
    if (map.kind == TypeMap::Kind::empty) return {};
    if (map.kind == TypeMap::Kind::dense && stride == map.bytes) {
        PackStep step = step_of(PackStep::Kind::dense, map.bytes);
        step.offset = map.offset;
        return step;
    }
    if (limits.any_way && is_column(map, stride, limits.isa) &&
        kernels::is_chosen(limits, PackKernel::columns, map.parts[0].bytes, std::abs(map.stride),
                           true))
        return grid_step(map, stride);
    if (std::vector<kernels::Block> blocks = blocks_of_record(map, rounds); !blocks.empty())
        return record_step(std::move(blocks), map.bytes, stride, limits, room);
    if (is_table(map)) return table_step(map, limits, room);
    if (map.kind == TypeMap::Kind::places) return places_step(map, limits, room);
    return loop_step(map, limits, room);
}

}  // namespace

PackStep plan_rounds(const TypeMap& map, int64_t rounds, int64_t stride,
                     const kernels::PackLimits& limits, PlanRoom& room) {
    room.take(sizeof(PackStep));
    PackStep step = round_of(map, rounds, stride, limits, room);
    step.rounds = rounds;
    step.stride = stride;
    return step;
}

PackStep plan_once(const TypeMap& map, const kernels::PackLimits& limits, PlanRoom& room) {
    if (map.kind == TypeMap::Kind::strided) {
        PackStep step = plan_rounds(map.parts[0], map.count, map.stride, limits, room);
        step.offset += map.offset;
        return step;
    }
    const Bounds bounds = bounds_of(map);
    return plan_rounds(map, 1, bounds.high - bounds.low, limits, room);
}

PackStep plan_copies(const TypeMap& map, int64_t extent, const kernels::PackLimits& limits,
                     PlanRoom& room) {
    constexpr int64_t any_number = 2;
    const bool continues = map.kind == TypeMap::Kind::strided && extent == map.count * map.stride;
    if (continues) return plan_once(map, limits, room);
    PackStep step = plan_rounds(map, any_number, extent, limits, room);
    step.rounds = 1;
    return step;
}

}  // namespace vecmpi::datatype
