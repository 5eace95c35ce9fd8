// SPDX-License-Identifier: BSD-3-Clause
// One side of a collective of equal blocks, on one rank: Gather, Scatter, Alltoall (MPI 4.0, 6.5,
// 6.6, 6.8).
#pragma once

#include <mpi.h>

#include "operands.hpp"

namespace vecmpi::pipeline {

// Without blocks its arguments mean nothing, or it is in place.
struct BlockSide {
    const void* buffer = nullptr;
    MPI_Count count = 0;  // elements of a block
    MPI_Datatype type = MPI_BYTE;
    int blocks = 0;
    bool is_written = false;

    MPI_Count elements() const noexcept { return count * blocks; }
    MPI_Count block_bytes() const noexcept { return count * offload::size_of(type); }
    bool needs_packing() const noexcept { return blocks != 0 && !library::is_builtin_type(type); }
    // The library's to refuse, on this rank alone perhaps.
    bool is_refused_buffer() const noexcept {
        return is_written ? offload::is_refused_output(buffer, elements(), type)
                          : offload::is_refused(buffer, elements(), type);
    }
};

// The library's own test of whether one block lies where the rank's block of all lies, and its
// error.
inline bool is_aliased(const BlockSide& one, const BlockSide& all, int rank) noexcept {
    return one.type == all.type && one.count == all.count &&
           is_alias(one.buffer, advanced(all.buffer, rank * all.block_bytes()));
}

}  // namespace vecmpi::pipeline
