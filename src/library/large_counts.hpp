// SPDX-License-Identifier: BSD-3-Clause
// What MPI 4.0 added with large counts and vecmpi calls, by the functions of MPI 3. For libraries
// of MPI 3.1, such as MPICH 3.4, Cray MPICH 8 and Intel MPI 2021.8. Inside src/library and its
// tests only.
#pragma once

#include "library/api/real.hpp"

namespace vecmpi::library {

// Fills the members that are null. What cannot be said in an int then returns MPI_ERR_COUNT, of
// which no error handler hears.
void complete_with_large_counts(RealFunctions& functions) noexcept;

}  // namespace vecmpi::library
