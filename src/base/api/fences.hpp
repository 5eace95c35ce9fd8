// SPDX-License-Identifier: BSD-3-Clause
// Fences of which one side costs nothing.
#pragma once

#include <atomic>

namespace vecmpi::base {

// Pairs of full fences, of which one side runs often and the other seldom. The light one costs
// nothing. The heavy one is a system call (membarrier(2), private expedited) that runs a fence on
// every CPU with a thread of this process.
bool asymmetric_fences_work() noexcept;  // asks the kernel on first use
inline void light_fence(bool asymmetric) noexcept {
    if (asymmetric)
        std::atomic_signal_fence(std::memory_order_seq_cst);
    else
        std::atomic_thread_fence(std::memory_order_seq_cst);
}
bool heavy_fence(bool asymmetric) noexcept;  // false where the kernel refuses it

}  // namespace vecmpi::base
