// SPDX-License-Identifier: BSD-3-Clause
// What is known of the program's files. Not a door: src/intercept only.
#pragma once

#include <mpi.h>

namespace vecmpi::intercept {

// Its bytes are those of memory.
bool has_native_view(MPI_File file) noexcept;

}  // namespace vecmpi::intercept
