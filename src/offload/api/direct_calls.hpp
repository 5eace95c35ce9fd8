// SPDX-License-Identifier: BSD-3-Clause
// Calls that the library executes on the caller's thread, and calls of MPI that come back from
// them.
#pragma once

#include "library/api.hpp"
#include "offload/api/thread_state.hpp"

namespace vecmpi::offload {

// Whose calls come back to MPI from inside a call. The library's own (ROMIO) go straight to the
// real functions. The program's (callbacks) are served as usual; its error handler may even leave
// the call by longjmp, since nothing is held.
enum class Reentry { library, program };

// A call that the library executes on the caller's thread, after everything that was posted before.
class DirectCall {
  public:
    explicit DirectCall(Call call, Reentry reentry = Reentry::library) noexcept;
    ~DirectCall() noexcept;
    DirectCall(const DirectCall&) = delete;
    DirectCall& operator=(const DirectCall&) = delete;

  private:
    bool marks_inside_;
};

// For a call that runs without the library: all that this thread has posted is issued first.
void issue_what_was_posted() noexcept;

// True inside a real function that we called on this thread: hand the call on untouched.
bool is_reentrant() noexcept;
// It is in Job::advance(), and so reentrant too.
bool is_in_job() noexcept;

// True on the offload thread: nothing there returns to the program.
bool is_offload_thread() noexcept;

}  // namespace vecmpi::offload
