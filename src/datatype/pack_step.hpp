// SPDX-License-Identifier: BSD-3-Clause
// A step of a plan, and the walk that carries steps out. Knows no MPI. Inside src/datatype and its
// tests only.
#pragma once

#include <memory>
#include <vector>

#include "kernels/api.hpp"

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
    int64_t offset = 0;  // of round 0, from the holder's origin
    int64_t bytes = 0;   // of the stream, in one round
    int64_t rounds = 1;
    int64_t stride = 0;
    std::unique_ptr<kernels::RecordCopier> records;
    std::unique_ptr<kernels::TableCopier> table;
    kernels::Grid column{};  // of a grid: rows, row_stride and bytes
    std::vector<int64_t> offsets;
    std::vector<PackStep> parts;
};

struct Movement {
    kernels::Direction direction;
    kernels::Isa isa;
};
// Moves bytes [first, first + bytes) of the stream of `rounds` rounds. `packed` begins with byte
// `first`; `memory` is the origin of the step's holder.
void carry_out(const PackStep& step, const Movement& movement, char* packed, char* memory,
               int64_t rounds, int64_t first, int64_t bytes) noexcept;

// The kernel that moves most of it, for the report.
enum class MovedBy : uint8_t { blocks, permutes, gathers, transposes };
MovedBy moved_by(const PackStep& step, kernels::Direction direction) noexcept;

}  // namespace vecmpi::datatype
