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

int serve_Win_test(MPI_Win win, int* flag) noexcept {
    const offload::DirectCall scope(Call::Win_test, offload::Reentry::program);
    return offload::look_once(flag, [=]() noexcept { return real.Win_test(win, flag); });
}

}  // namespace vecmpi::intercept
