// SPDX-License-Identifier: BSD-3-Clause
// The table of functions that MPICH 4 calls for its predefined ops. It is inside the library and
// not exported; found by its shape and proved by a call. Only arithmetic.cpp uses this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vecmpi/offload.hpp"

namespace vecmpi {

// in, inout, number of elements, datatype: MPICH 4.0, src/include/mpir_op.h.
using OpFunction = void (*)(void* in, void* inout, MPI_Aint* length, MPI_Datatype* type);

// The low byte of a predefined op's handle: MPI_MAX is 1, MPI_MAXLOC is 12.
constexpr size_t first_op = 1, last_op = 12;
constexpr size_t op_index(MPI_Op op) noexcept { return static_cast<unsigned>(op) & 0xffu; }
constexpr bool is_predefined_op(MPI_Op op) noexcept {
    return (static_cast<unsigned>(op) & ~0xffu) == 0x58000000u && op_index(op) >= first_op &&
           op_index(op) <= last_op;
}

struct CodeRange {
    uintptr_t begin, end;
};

// MPICH of this major version, by its own word. Not what others have made of it.
bool library_is_mpich_4() noexcept;

// Where in words[0..count) a null stands before last_op different addresses of code: what the table
// looks like. Pure.
std::vector<size_t> op_table_candidates(const uintptr_t words[], size_t count,
                                        const std::vector<CodeRange>& code);

// The library's table, whose entry op_index(op) may be replaced from now on, or null with the
// reason. Needs an initialised library that no other thread is in: the proof replaces entries for
// the time of a call of MPI_Reduce_local.
OpFunction* find_op_table(const BoundLibrary& library, const char** where) noexcept;

}  // namespace vecmpi
