// SPDX-License-Identifier: BSD-3-Clause
// Errors that are answers, and error handlers of the C++ bindings.
#pragma once

namespace vecmpi::library {

// ---- questions whose answer may be an error -------------------------------------------------

// While this lives on a thread, an error of the library is an answer to us, of which the program
// must not hear. Where that can be done, the library returns the code and calls no error handler.
class QuietErrors {
  public:
    QuietErrors() noexcept;
    ~QuietErrors();
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;
};
bool errors_are_quiet() noexcept;
bool errors_can_be_quiet() noexcept;

// From now on the library raises no error while comm_traits() asks about a handle. That needs a
// library that raises errors by MPIR_Err_return_comm through its procedure linkage table, as MPICH
// does. For others src/offload has errors returned during the question.
void keep_questions_quiet() noexcept;

// ---- error handlers of MPI 2's C++ bindings ---------------------------------------------------

// Calls a handler's function, which takes an object. kind: what `object` is a handle of. For
// cxx_kind_of_file it points to an MPI_File.
using AnyFunction = void (*)();
using CxxCaller = void (*)(int kind, int* object, int* code, AnyFunction function);
constexpr int cxx_kind_of_file = 1;
// From now on the library calls answer(caller) in place of the caller that the bindings name.
// answer must stay valid.
void answer_cxx_callers(CxxCaller (*answer)(CxxCaller caller) noexcept) noexcept;

}  // namespace vecmpi::library
