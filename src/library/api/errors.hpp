// SPDX-License-Identifier: BSD-3-Clause
// Errors that are answers, and error handlers of the C++ bindings.
#pragma once

namespace vecmpi::library {

// ---- questions whose answer may be an error -------------------------------------------------

// While there is one on this thread, an error of the library's is an answer to us, and nothing that
// the program may hear of: the library returns the code and calls no error handler, where
// that can be prevented.
class QuietErrors {
  public:
    QuietErrors() noexcept;
    ~QuietErrors();
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;
};
bool errors_are_quiet() noexcept;
bool errors_can_be_quiet() noexcept;

// From now on the library raises no error while comm_traits() asks about a handle. Only where it
// raises them by MPIR_Err_return_comm through its procedure linkage table, as MPICH does; elsewhere
// src/offload has errors returned for the time of the question.
void keep_questions_quiet() noexcept;

// ---- error handlers of MPI 2's C++ bindings ---------------------------------------------------

// Calls a handler's function, which takes an object. kind: what `object` is a handle of; for
// cxx_kind_of_file it points to an MPI_File.
using AnyFunction = void (*)();
using CxxCaller = void (*)(int kind, int* object, int* code, AnyFunction function);
constexpr int cxx_kind_of_file = 1;
// From now on the library calls answer(caller) in place of the caller that the bindings name.
// answer: for ever.
void answer_cxx_callers(CxxCaller (*answer)(CxxCaller caller) noexcept) noexcept;

}  // namespace vecmpi::library
