// SPDX-License-Identifier: BSD-3-Clause
// Which row of the report a datatype has, and why the library packs it. Inside src/datatype and its
// tests only.
#pragma once

#include <mpi.h>

#include <atomic>

#include "decode.hpp"
#include "library/api.hpp"

namespace vecmpi::datatype {

// Relaxed: written in MPI_Init.
extern std::atomic<bool> types_are_reported;

// After a handle was given out; it asks the library what the type is. Returns the row: no_row where
// there is no report.
RowNumber enter_row(MPI_Datatype type) noexcept;
// Before a handle is given back. The row stays.
void leave_row(MPI_Datatype type) noexcept;

// The row of a type, found without a lock.
RowNumber row_of_reported(MPI_Datatype type) noexcept;
inline RowNumber row_of(MPI_Datatype type) noexcept {
    return types_are_reported.load(std::memory_order_relaxed) && !library::is_builtin_type(type)
               ? row_of_reported(type)
               : no_row;
}

// Why a type has no plan for MPI_Pack and MPI_Unpack, as decided; before that too_little.
void note_verdict(MPI_Datatype type, WhyLibrary why) noexcept;
WhyLibrary verdict_of(MPI_Datatype type) noexcept;

// Pure. Of the reasons why make_plan() makes none.
WhyLibrary why_library(Counter decline) noexcept;

// How the type was made, with the library's names of predefined types.
std::string made_as(const TypeTree& tree);

}  // namespace vecmpi::datatype
