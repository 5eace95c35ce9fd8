// SPDX-License-Identifier: BSD-3-Clause
// Hand-written handlers of windows.
#include "datatype/api.hpp"
#include "intercept/mpi_handlers.hpp"
#include "offload/api.hpp"

namespace vecmpi::intercept {

int serve_Win_free(MPI_Win* win) {
    offload::note_window_freed();
    datatype::FreedWindow freed(win != nullptr ? *win : MPI_WIN_NULL);
    const offload::DirectCall scope(Call::Win_free);
    const int error = real.Win_free(win);
    if (error != MPI_SUCCESS) freed.was_refused();
    return error;
}

// MPICH looks before it polls. Its own barrier polls, so that after it the first look sees what was
// completed before it; a barrier through memory does not.
int serve_Win_test(MPI_Win win, int* flag) noexcept {
    const offload::DirectCall scope(Call::Win_test, offload::Reentry::program);
    const int error = real.Win_test(win, flag);
    return error == MPI_SUCCESS && !*flag ? real.Win_test(win, flag) : error;
}

}  // namespace vecmpi::intercept
