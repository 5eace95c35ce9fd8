// SPDX-License-Identifier: BSD-3-Clause
// The table of op functions inside the library.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "real.hpp"

namespace vecmpi::library {

// in, inout, number of elements, datatype: MPICH 4.0, src/include/mpir_op.h.
using OpFunction = void (*)(void* in, void* inout, MPI_Aint* length, MPI_Datatype* type);

// The low byte of a predefined op's handle: MPI_MAX is 1, MPI_MAXLOC is 12.
constexpr size_t first_op = 1, last_op = 12;
constexpr unsigned null_op = 0x58000000u;  // what precedes that byte
constexpr size_t op_index(MPI_Op op) noexcept { return static_cast<unsigned>(op) & 0xffu; }
constexpr bool is_predefined_op(MPI_Op op) noexcept {
    return (static_cast<unsigned>(op) & ~0xffu) == null_op && op_index(op) >= first_op &&
           op_index(op) <= last_op;
}
constexpr MPI_Op predefined_op(size_t index) noexcept {
    return static_cast<MPI_Op>(null_op + index);
}

struct CodeRange {
    uintptr_t begin, end;
};

// Pure. Where in words[0..count) a null is followed by last_op different addresses of code, as in
// the table.
std::vector<size_t> op_table_candidates(const uintptr_t words[], size_t count,
                                        const std::vector<CodeRange>& code);

// The library's table, or null with the reason. Its entries, by op_index(op), may be replaced from
// now on. Call it while no other thread is in the library: the proof replaces entries during a call
// of MPI_Reduce_local.
OpFunction* find_op_table(const BoundLibrary& library, const char** where) noexcept;

// From now on the library's collectives call the functions of the table. It may have something
// faster, which is left out while no window exists.
void reduce_by_op_functions() noexcept;
void reduce_as_before() noexcept;
void note_windows(int more) noexcept;  // made, or freed where negative

}  // namespace vecmpi::library
