// SPDX-License-Identifier: BSD-3-Clause
// Calls that the library executes on the caller's thread, and what may come back to MPI from them.
#pragma once

#include "library/api.hpp"
#include "offload/api/thread_state.hpp"

namespace vecmpi::offload {

// Whose calls come back to MPI from inside a call: the library's own (ROMIO), which go straight to
// the real functions; or the program's (callbacks), which are served as usual. An error handler of
// the program may leave the call by longjmp: with `program` nothing is left behind.
enum class Reentry { library, program };

// A call that the library executes on the caller's thread: everything posted before is issued
// first.
class DirectCall {
  public:
    explicit DirectCall(Call call, Reentry reentry = Reentry::library) noexcept;
    ~DirectCall() noexcept;
    DirectCall(const DirectCall&) = delete;
    DirectCall& operator=(const DirectCall&) = delete;

  private:
    bool marks_inside_;
};

// For a call that runs without the library: it comes after all that this thread posted before.
void issue_what_was_posted() noexcept;

// True inside a real function that we called on this thread: hand the call on untouched.
bool is_reentrant() noexcept;

// True on the offload thread: nothing there returns to the program.
bool is_offload_thread() noexcept;

}  // namespace vecmpi::offload
