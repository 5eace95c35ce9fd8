// SPDX-License-Identifier: BSD-3-Clause
// Threads that cannot be cancelled for a while.
#pragma once

#include <pthread.h>

namespace vecmpi::base {

// While this lives, no cancellation of the thread is acted on. An unwinder must not pass through
// functions that do not throw, and plain MPI has no points of cancellation there.
class NoCancellation {
  public:
    NoCancellation() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
    NoCancellation(const NoCancellation&) = delete;
    NoCancellation& operator=(const NoCancellation&) = delete;

  private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace vecmpi::base
