// SPDX-License-Identifier: BSD-3-Clause
// A layout made ready to be carried out: which kernel moves which part, with its tables. Pure but
// for the copying itself; knows no MPI. Inside src/datatype and its tests only.
#pragma once

#include <memory>
#include <vector>

#include "layout.hpp"

namespace vecmpi::datatype {

// A part of a plan: `rounds` times the same, `stride` bytes apart.
struct PackStep {
    enum class Kind : uint8_t {
        dense,    // rounds follow each other without a gap
        records,  // a round is a record of a few blocks
        table,    // a round is all blocks of a table
        grid,     // a round is a column
        places,   // a round is parts[0] at each of `offsets`
        loop      // a round is all parts, one after the other
    };
    Kind kind = Kind::dense;
    int64_t offset = 0;  // of round 0, from where whatever holds the step stands
    int64_t bytes = 0;   // of the stream, in one round
    int64_t rounds = 1;
    int64_t stride = 0;
    std::unique_ptr<kernels::RecordCopier> records;
    std::unique_ptr<kernels::TableCopier> table;
    kernels::Grid column{};  // of a grid: rows, row_stride and bytes
    std::vector<int64_t> offsets;
    std::vector<PackStep> parts;
};

// 64 Ki blocks of different lengths take 1 MiB, what a stream of 4 MiB of 1 to 8 ints has of them
// 3.7 MiB. A record takes up to 2.5 KiB.
constexpr size_t most_plan_bytes = size_t{4} << 20;

// The memory that a plan may still take. Once it is exceeded, its steps are not whole: there is no
// plan then.
struct PlanRoom {
    size_t bytes = most_plan_bytes;
    bool is_exceeded = false;
    void take(size_t taken) noexcept {
        is_exceeded = is_exceeded || taken > bytes;
        bytes -= is_exceeded ? 0 : taken;
    }
};

// Rounds of `layout`, `stride` apart.
PackStep plan_rounds(const Layout& layout, int64_t rounds, int64_t stride,
                     const kernels::PackLimits& limits, PlanRoom& room);
PackStep plan_layout(const Layout& layout, const kernels::PackLimits& limits, PlanRoom& room);

// Any number of copies of a layout: the step of one copy's rounds; of more copies it has as many
// times the rounds.
PackStep plan_copies(const Layout& layout, int64_t extent, const kernels::PackLimits& limits,
                     PlanRoom& room);

// Bytes [first, first + bytes) of the stream of `rounds` rounds; `packed` begins with byte `first`,
// memory is where the step's holder stands.
struct Movement {
    kernels::Direction direction;
    kernels::Isa isa;
};
void carry_out(const PackStep& step, const Movement& movement, char* packed, char* memory,
               int64_t rounds, int64_t first, int64_t bytes) noexcept;

// The kernel that moves most of it, for the report.
enum class MovedBy : uint8_t { blocks, permutes, gathers, transposes };
MovedBy moved_by(const PackStep& step, kernels::Direction direction) noexcept;

}  // namespace vecmpi::datatype
