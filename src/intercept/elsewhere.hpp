// SPDX-License-Identifier: BSD-3-Clause
// Definitions of a symbol outside this library. Not a door: src/intercept only.
#pragma once

namespace vecmpi {

// The next definition in the loader's order, or one in a library that came with RTLD_LOCAL, such as
// MPI_Status_c2f08 in MPICH's Fortran library; null where there is none. Never loads anything.
void* defined_elsewhere(const char* symbol) noexcept;

}  // namespace vecmpi
