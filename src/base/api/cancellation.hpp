// SPDX-License-Identifier: BSD-3-Clause
// No cancellation of threads where something is made.
#pragma once

#include <pthread.h>

namespace vecmpi::base {

// While it lives no cancellation of this thread is acted on: an unwinder must not come through
// functions that do not throw, and plain MPI has no points of cancellation where we make something.
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
