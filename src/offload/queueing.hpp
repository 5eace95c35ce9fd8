// SPDX-License-Identifier: BSD-3-Clause
// May an operation wait in the queue and complete in the window? The rule for all who put something
// there.
#pragma once

#include "offload/api.hpp"

namespace vecmpi::offload {

// A completion error is raised by Testsome with the handler of MPI_COMM_WORLD. That must be the
// handler that the communicator has, and it must not matter on which thread it runs.
bool window_serves(CommTraits::Handler handler) noexcept;

// Before a nonblocking reduction: from the first with an operator of the program on, callers ask.
void note_op(MPI_Op op) noexcept;

}  // namespace vecmpi::offload
