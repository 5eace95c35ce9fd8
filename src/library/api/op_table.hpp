// SPDX-License-Identifier: BSD-3-Clause
// The table of op functions inside the library.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "handles.hpp"
#include "real.hpp"

namespace vecmpi::library {

// in, inout, number of elements, datatype: MPICH 4.0, src/include/mpir_op.h.
using OpFunction = void (*)(void* in, void* inout, MPI_Aint* length, MPI_Datatype* type);

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
