// SPDX-License-Identifier: BSD-3-Clause
// Inside src/datatype and its tests only.
#pragma once

#include <mpi.h>

namespace vecmpi::datatype {

// No plan is made of this handle for messages any more; waits for one that is being made.
void forget_message_handle(MPI_Datatype handle) noexcept;

}  // namespace vecmpi::datatype
