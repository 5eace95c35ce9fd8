// SPDX-License-Identifier: BSD-3-Clause
// Sleeping until a message comes: a thread that waits has its polls arm what they find empty,
// and sleeps once all are armed. The next message to one of them wakes it, or another thread whose
// poll moved something.
#pragma once

#include <atomic>
#include <cstdint>

namespace vecmpi::library {

// Before the real MPI_Init: UCX is to be asked for what wakes. A message to the own rank then takes
// 135 ns in place of 56 (1 KiB, MPICH 4.0.2), since its shortest way cannot wake.
void want_wakeup(bool wanted) noexcept;
// Can a sleeper be woken by every message? Proved in MPI_Init, after messages have moved.
bool library_wakes() noexcept;
// neighbours_by_polls: messages between ranks of this node are known to come by polls.
void prove_wakeup(bool neighbours_by_polls) noexcept;

// The polls of this thread's next look are to arm.
void arm_next_polls() noexcept;
// So often in a row nothing was armed, and the thread looks again at once; then it rests.
constexpr uint32_t most_refusals = 32;
// After a look in vain: sleeps if its polls armed, at most for so long. False where they did not.
// door: a descriptor that wakes as well, or -1; enough by itself where the library does not wake.
bool sleep_if_armed(uint64_t limit_us, int door = -1) noexcept;
// This thread goes on without a sleep.
void forget_armed() noexcept;
// Threads that sleep, or are about to.
extern std::atomic<uint32_t> sleepers;
void ring_sleepers() noexcept;
// There is something to do that a sleeper of this process may wait for.
inline void wake_sleepers() noexcept {
    if (sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
        ring_sleepers();
}
// While there is one, this thread is in a call that waits, and may sleep in the library's own
// waits. A test must not, nor a post.
extern thread_local constinit int blocking_calls __attribute__((tls_model("initial-exec")));
// The polls of this thread have armed something, and others ring for it.
extern thread_local constinit bool is_announced __attribute__((tls_model("initial-exec")));
class BlockingCall {
  public:
    BlockingCall() noexcept { ++blocking_calls; }
    ~BlockingCall() {
        if (--blocking_calls == 0 && is_announced) [[unlikely]]
            forget_armed();  // another thread has completed what it waited for
    }
    BlockingCall(const BlockingCall&) = delete;
    BlockingCall& operator=(const BlockingCall&) = delete;
};
// A sleep never lasts longer: what comes by another way than a poll is seen then.
constexpr uint64_t longest_sleep_us = 1000;

}  // namespace vecmpi::library
