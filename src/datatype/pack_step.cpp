// SPDX-License-Identifier: BSD-3-Clause
// The walk over the steps of a plan.
#include "pack_step.hpp"

#include <algorithm>

namespace vecmpi::datatype {

namespace {

void copy_flat(kernels::Direction direction, char* packed, char* memory, int64_t bytes) noexcept {
    const bool packing = direction == kernels::Direction::pack;
    kernels::copy_bytes(packing ? packed : memory, packing ? memory : packed,
                        static_cast<size_t>(bytes));
}

// Bytes of a round's stream that are to be moved. `packed` begins with byte `first`, `memory` is
// where the round stands.
struct Part {
    char *packed, *memory;
    int64_t first, bytes;
};

// Of consecutive pieces, each of bytes_of(i) bytes of the stream, those that lie in the part:
// copy(i, packed, from, bytes) moves so many bytes of piece i from its byte `from` on.
template <class BytesOf, class Copy>
void for_pieces(size_t pieces, Part part, const BytesOf& bytes_of, const Copy& copy) noexcept {
    for (size_t i = 0; i < pieces && part.bytes > 0; ++i) {
        const int64_t whole = bytes_of(i);
        if (part.first >= whole) {
            part.first -= whole;
            continue;
        }
        const int64_t bytes = std::min(whole - part.first, part.bytes);
        copy(i, part.packed, part.first, bytes);
        part.packed += bytes;
        part.first = 0;
        part.bytes -= bytes;
    }
}

void copy_record(const PackStep& step, kernels::Direction direction, const Part& part) noexcept {
    const std::vector<kernels::Block>& blocks = step.records->blocks();
    for_pieces(
        blocks.size(), part, [&](size_t i) { return blocks[i].bytes; },
        [&](size_t i, char* packed, int64_t from, int64_t bytes) {
            copy_flat(direction, packed, part.memory + blocks[i].offset + from, bytes);
        });
}

void copy_column(const kernels::Grid& column, kernels::Direction direction, Part part) noexcept {
    const auto block = static_cast<int64_t>(column.bytes);
    part.memory += part.first / block * column.row_stride;
    part.first %= block;
    for_pieces(
        column.rows, part, [&](size_t) { return block; },
        [&](size_t i, char* packed, int64_t from, int64_t bytes) {
            copy_flat(direction, packed,
                      part.memory + static_cast<int64_t>(i) * column.row_stride + from, bytes);
        });
}

void carry_out_at_places(const PackStep& step, const Movement& movement, Part part) noexcept {
    const PackStep& inner = step.parts[0];
    const int64_t whole = inner.bytes * inner.rounds;
    const int64_t skipped = part.first / whole;
    const int64_t* const offsets = step.offsets.data() + skipped;
    part.first %= whole;
    for_pieces(
        step.offsets.size() - static_cast<size_t>(skipped), part, [&](size_t) { return whole; },
        [&](size_t i, char* packed, int64_t from, int64_t bytes) {
            carry_out(inner, movement, packed, part.memory + offsets[i], inner.rounds, from, bytes);
        });
}

void carry_out_steps(const std::vector<PackStep>& steps, const Movement& movement,
                     const Part& part) noexcept {
    for_pieces(
        steps.size(), part, [&](size_t i) { return steps[i].bytes * steps[i].rounds; },
        [&](size_t i, char* packed, int64_t from, int64_t bytes) {
            carry_out(steps[i], movement, packed, part.memory, steps[i].rounds, from, bytes);
        });
}

void carry_out_part(const PackStep& step, const Movement& movement, const Part& part) noexcept {
    switch (step.kind) {
        case PackStep::Kind::dense:
            return copy_flat(movement.direction, part.packed, part.memory + part.first, part.bytes);
        case PackStep::Kind::records:
            return copy_record(step, movement.direction, part);
        case PackStep::Kind::table:
            return step.table->copy(movement.direction, part.packed, part.memory,
                                    static_cast<size_t>(part.first),
                                    static_cast<size_t>(part.bytes));
        case PackStep::Kind::grid:
            return copy_column(step.column, movement.direction, part);
        case PackStep::Kind::places:
            return carry_out_at_places(step, movement, part);
        case PackStep::Kind::loop:
            return carry_out_steps(step.parts, movement, part);
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
        carry_out_part(step, movement, {packed, memory, 0, step.bytes});
        packed += step.bytes;
        memory += step.stride;
    }
}

}  // namespace

// 1. The rest of a round that begins before. 2. Whole rounds. 3. The beginning of one.
void carry_out(const PackStep& step, const Movement& movement, char* packed, char* memory,
               int64_t rounds, int64_t first, int64_t bytes) noexcept {
    if (bytes == 0) return;
    memory += step.offset;
    const bool is_whole = first == 0 && bytes == rounds * step.bytes;
    if (is_whole) return carry_out_rounds(step, movement, packed, memory, rounds);
    int64_t round = first / step.bytes;
    if (const int64_t begun = first % step.bytes; begun != 0) {  // 1
        const int64_t rest = std::min(step.bytes - begun, bytes);
        carry_out_part(step, movement, {packed, memory + round * step.stride, begun, rest});
        packed += rest;
        bytes -= rest;
        ++round;
    }
    const int64_t whole = bytes / step.bytes;  // 2
    if (whole != 0) carry_out_rounds(step, movement, packed, memory + round * step.stride, whole);
    const int64_t rest = bytes % step.bytes;  // 3
    if (rest != 0)
        carry_out_part(
            step, movement,
            {packed + whole * step.bytes, memory + (round + whole) * step.stride, 0, rest});
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
