// SPDX-License-Identifier: BSD-3-Clause
// Questions of ours whose answer may be an error. Not a door: src/intercept only.
#pragma once

namespace vecmpi {

// From now on the library raises no error while comm_traits() asks about a handle. Only where it
// raises them by MPIR_Err_return_comm through its procedure linkage table, as MPICH does; elsewhere
// the program's error handler hears of the question first, then of its own call.
void keep_questions_quiet() noexcept;

}  // namespace vecmpi
