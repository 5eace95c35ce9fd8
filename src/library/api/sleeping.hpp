// SPDX-License-Identifier: BSD-3-Clause
// Sleeping until a message comes. A waiting thread has its polls arm the workers that they find
// empty, and sleeps once all are armed. It is woken by the next message to one of them, or by
// another thread whose poll moved something.
#pragma once

#include <atomic>
#include <cstdint>

namespace vecmpi::library {

// Before the real MPI_Init: shall UCX be asked for its wake-up feature? A message to the own rank
// then takes 135 ns in place of 56 (1 KiB, MPICH 4.0.2), since its shortest path cannot wake.
void want_wakeup(bool wanted) noexcept;
// Is a sleeper woken by every message? Proved in MPI_Init, after messages have moved.
bool library_wakes() noexcept;
// neighbours_by_polls: messages between ranks of this node are known to come by polls.
void prove_wakeup(bool neighbours_by_polls) noexcept;

// The polls of this thread's next look are to arm.
void arm_next_polls() noexcept;
// After so many refusals in a row the thread rests, and does not look again at once.
constexpr uint32_t most_refusals = 32;
// After a look in vain: sleeps if the polls armed, for limit_us at most. False where they did not.
// door: a descriptor that wakes as well, or -1; it is enough where the library does not wake.
bool sleep_if_armed(uint64_t limit_us, int door = -1) noexcept;
// Threads of a process that wait at once wake each other at each message. False for some time where
// that ended most of this thread's sleeps, sooner than it takes to fall asleep and wake: then a
// yield costs less. VECMPI_WAIT=sleep sleeps all the same.
bool sleep_pays() noexcept;
// This thread goes on without a sleep.
void forget_armed() noexcept;
// Threads that sleep, or are about to.
extern std::atomic<uint32_t> sleepers;
void ring_sleepers() noexcept;
// Something happened that a sleeper of this process may wait for.
inline void wake_sleepers() noexcept {
    if (sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
        ring_sleepers();
}
// While there is one, this thread is in a call that waits, and may sleep in the library's own
// waits. Tests and posts must not.
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
// While there is one, this thread is in a call that looks once, such as MPI_Test: the library's
// polls in it rest as FailingLooks says. Need::looks.
extern thread_local constinit int looking_calls __attribute__((tls_model("initial-exec")));
class LookingCall {
  public:
    LookingCall() noexcept { ++looking_calls; }
    ~LookingCall() { --looking_calls; }
    LookingCall(const LookingCall&) = delete;
    LookingCall& operator=(const LookingCall&) = delete;
};
// No sleep lasts longer: what comes by another path than a poll is seen then.
constexpr uint64_t longest_sleep_us = 1000;

}  // namespace vecmpi::library
