// SPDX-License-Identifier: BSD-3-Clause
// Handlers of what makes an error handler (MPI 4.0, 9.3): the library gets functions of ours.
#include "base/api/needs.hpp"
#include "error_handlers.hpp"
#include "intercept/mpi_handlers.hpp"
#include "offload/api.hpp"

namespace vecmpi::intercept {

namespace {

// make(function): the library's own, with what we give it in place of the program's function. Only
// while the engine runs: else no entry of ours is bound.
template <class Function, class Make>
int making_error_handler(Function* function, Make make) noexcept {
    if (!offload::engine_runs()) return make(function);
    library::answer_cxx_callers(wait_for_entry);
    set_need(Need::error_handlers, true);
    return make(deferred(function));
}

}  // namespace

int serve_Comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn,
                                 MPI_Errhandler* errhandler) noexcept {
    return making_error_handler(comm_errhandler_fn, [=](auto* function) noexcept {
        return real.Comm_create_errhandler(function, errhandler);
    });
}

int serve_Errhandler_create(MPI_Comm_errhandler_function* comm_errhandler_fn,
                            MPI_Errhandler* errhandler) noexcept {
    return making_error_handler(comm_errhandler_fn, [=](auto* function) noexcept {
        return real.Errhandler_create(function, errhandler);
    });
}

int serve_Win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn,
                                MPI_Errhandler* errhandler) noexcept {
    return making_error_handler(win_errhandler_fn, [=](auto* function) noexcept {
        return real.Win_create_errhandler(function, errhandler);
    });
}

int serve_File_create_errhandler(MPI_File_errhandler_function* file_errhandler_fn,
                                 MPI_Errhandler* errhandler) noexcept {
    return making_error_handler(file_errhandler_fn, [=](auto* function) noexcept {
        return real.File_create_errhandler(function, errhandler);
    });
}

int serve_Session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn,
                                    MPI_Errhandler* errhandler) noexcept {
    return making_error_handler(session_errhandler_fn, [=](auto* function) noexcept {
        return real.Session_create_errhandler(function, errhandler);
    });
}

}  // namespace vecmpi::intercept
