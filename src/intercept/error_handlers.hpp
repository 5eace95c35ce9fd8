// SPDX-License-Identifier: BSD-3-Clause
// Error handler functions of the program run when the MPI call that failed has returned: nothing is
// held then, so they may call MPI, leave by longjmp or throw. Not a door: src/intercept only.
#pragma once

#include "library/api.hpp"

namespace vecmpi::intercept {

// Errors of this thread whose functions have not been called yet.
extern thread_local constinit unsigned errors_waiting __attribute__((tls_model("initial-exec")));

// Calls the functions that wait, in order, unless the MPI library is the caller: then the program's
// own call does. Not noexcept, and it holds nothing: they may never return. What the MPI call then
// returns.
int call_error_handlers(int rc, const void* caller);

// Every entry of ours ends with this. Inline, so that the return address is the entry's.
[[gnu::always_inline]] inline int finish(int rc) {
    if (errors_waiting == 0) [[likely]]
        return rc;
    return call_error_handlers(rc, __builtin_return_address(0));
}

// What the library gets in place of the program's function. The same one for the same function,
// since a program may make a handler again and again; the program's own where all are in use.
MPI_Comm_errhandler_function* deferred(MPI_Comm_errhandler_function* function) noexcept;
MPI_File_errhandler_function* deferred(MPI_File_errhandler_function* function) noexcept;
// Of windows and sessions, whose handles are passed as those of communicators are. (In MPICH's ABI
// they are the same type.)
template <class Handle>
auto* deferred(void (*function)(Handle*, int*, ...)) noexcept {
    static_assert(sizeof(Handle) == sizeof(MPI_Comm));
    return reinterpret_cast<decltype(function)>(
        deferred(reinterpret_cast<MPI_Comm_errhandler_function*>(function)));
}

// The same for handlers of MPI 2's C++ bindings: what the library calls in place of their caller.
library::CxxCaller wait_for_entry(library::CxxCaller caller) noexcept;

// How many functions can be told apart, for those of files and for all others.
constexpr unsigned most_deferred = 128;
constexpr unsigned most_deferred_of_files = 32;

}  // namespace vecmpi::intercept
