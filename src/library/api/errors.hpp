// SPDX-License-Identifier: BSD-3-Clause
// Errors that are answers, and error handlers of the C++ bindings.
#pragma once

#include <mpi.h>

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
// does.
void keep_questions_quiet() noexcept;

// The communicator's error handler, to be given back.
MPI_Errhandler borrow_handler(MPI_Comm comm) noexcept;
void give_back_handler(MPI_Errhandler handler) noexcept;

// For a question where the library cannot be kept from raising an error; else this does nothing. Of
// a handle that is none, it raises the error on these communicators (MPI 4.0, 9.3), which return it
// meanwhile. So is an error of another thread that comes just then.
class LoudQuestion {
  public:
    LoudQuestion() noexcept;
    ~LoudQuestion();
    LoudQuestion(const LoudQuestion&) = delete;
    LoudQuestion& operator=(const LoudQuestion&) = delete;

  private:
    static constexpr MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF};
    const bool loud_;
    MPI_Errhandler handlers_[2];
};

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
