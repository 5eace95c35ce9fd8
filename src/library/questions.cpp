// SPDX-License-Identifier: BSD-3-Clause
// Is a handle a communicator? No MPI call says so: of one that was freed they all call the error
// handler of MPI_COMM_WORLD, which mostly ends the job. Must not silence a call of the program.
#include "library/api.hpp"

#include <dlfcn.h>

#include <iterator>

namespace vecmpi::library {
namespace {

// MPICH's, from 3.0 on: int MPIR_Err_return_comm(MPIR_Comm*, const char[], int).
using RaiseFunction = int (*)(void* comm, const char* function, int code);
constexpr const char* raise_symbol = "MPIR_Err_return_comm";
constinit RaiseFunction raise_in_library = nullptr;
constinit std::atomic<bool> can_be_quiet{false};
thread_local constinit int quiet __attribute__((tls_model("initial-exec"))) = 0;

// An error handler function of the program may leave by an exception.
int raise_unless_quiet(void* comm, const char* function, int code) {
    return errors_are_quiet() ? code : raise_in_library(comm, function, code);
}

}  // namespace

void keep_questions_quiet() noexcept {
    note_trait(Trait::quiet_errors, false);
    if (!may_have(Trait::quiet_errors)) return;
    raise_in_library =
        reinterpret_cast<RaiseFunction>(dlsym(bind_real_functions().handle, raise_symbol));
    if (raise_in_library == nullptr) return;
    if (replace_import(reinterpret_cast<const void*>(real.Comm_test_inter), raise_symbol,
                       reinterpret_cast<const void*>(raise_unless_quiet)))
        can_be_quiet.store(note_trait(Trait::quiet_errors, true), std::memory_order_relaxed);
}

QuietErrors::QuietErrors() noexcept { ++quiet; }
QuietErrors::~QuietErrors() { --quiet; }
bool errors_are_quiet() noexcept { return quiet != 0; }
bool errors_can_be_quiet() noexcept { return can_be_quiet.load(std::memory_order_relaxed); }

MPI_Errhandler borrow_handler(MPI_Comm comm) noexcept {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    real.Comm_get_errhandler(comm, &handler);
    return handler;
}

void give_back_handler(MPI_Errhandler handler) noexcept {
    const bool is_predefined = handler == MPI_ERRORS_RETURN || handler == MPI_ERRORS_ARE_FATAL ||
                               handler == MPI_ERRORS_ABORT || handler == MPI_ERRHANDLER_NULL;
    if (!is_predefined) real.Errhandler_free(&handler);  // our reference only
}

LoudQuestion::LoudQuestion() noexcept : loud_(!errors_can_be_quiet()) {
    static_assert(std::size(comms) == std::size(decltype(handlers_){}));
    for (size_t i = 0; loud_ && i < std::size(comms); ++i) {
        handlers_[i] = borrow_handler(comms[i]);
        real.Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN);
    }
}

LoudQuestion::~LoudQuestion() {
    for (size_t i = 0; loud_ && i < std::size(comms); ++i) {
        real.Comm_set_errhandler(comms[i], handlers_[i]);
        give_back_handler(handlers_[i]);
    }
}

}  // namespace vecmpi::library
