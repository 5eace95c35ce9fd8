// SPDX-License-Identifier: BSD-3-Clause
// How a thread waits: looks, pauses, yields, sleeps.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "settings.hpp"

namespace vecmpi::base {

inline void cpu_pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Since the machine started.
uint64_t monotonic_us() noexcept;
uint64_t monotonic_ns() noexcept;

// When a blocked thread sleeps until it is woken, where the library can wake it: never; while those
// who take up its yields compute; or in every wait, after its last yield.
enum class Sleeps : uint8_t { never, beside_work, always };

// How far and how fast the ladder is climbed. A step is one unsuccessful look by the caller.
struct WaitPolicy {
    uint32_t spins = 0;     // looks that follow at once
    uint32_t pauses = 0;    // then looks with a pause instruction between
    uint32_t yields = 0;    // then looks with sched_yield between; UINT32_MAX: for ever
    uint32_t sleep_us = 0;  // then sleeps of this length, doubling up to max_sleep_us
    uint32_t max_sleep_us = 0;
    Sleeps sleeps = Sleeps::never;
    uint32_t long_yields = 1;  // so many in a row, and those who take them up compute
};
// Whose threads outnumber the CPUs: nobody's, those of ranks that have CPUs enough by themselves,
// or the ranks.
enum class Crowd : uint8_t { none, of_threads, of_ranks };
// Pure.
WaitPolicy wait_policy(WaitMode mode, Crowd crowd) noexcept;

// What a waiting thread does after a look in vain: look again, pause first, give the CPU away,
// sleep until it is woken, or sleep for a fixed time.
enum class Rest : uint8_t { look, pause, yield, sleep, timed_sleep };
// Pure. steps: looks in vain so far, as far as they count. others_compute: those who take up the
// yields do.
struct WhoWaits {
    bool can_be_woken = false, others_compute = false;
};
Rest next_rest(const WaitPolicy& policy, uint32_t steps, WhoWaits who) noexcept;

// What a thread learns from its yields about who else wants its CPU. A thread that waits as well
// gives it back within microseconds; one that computes keeps it for a time slice: a long yield.
// long_yields: as of the policy. Pure.
class Neighbours {
  public:
    void yielded(uint64_t took_us, uint64_t now_us, uint32_t long_yields) noexcept;
    // They compute, and it is too early to ask again by a yield.
    bool compute(uint64_t now_us) const noexcept { return now_us < ask_again_us_; }
    bool computed_lately() const noexcept { return ask_again_us_ != 0; }

  private:
    uint64_t ask_again_us_ = 0;
    uint32_t long_ones_ = 0;  // in a row
};

// One climb. Call rest() after each look in vain, reset() after a success. Keeps a reference to the
// policy.
class Ladder {
  public:
    explicit constexpr Ladder(const WaitPolicy& policy) noexcept : policy_(policy) {}
    void rest() noexcept {
        if (!spins()) climb();
    }
    // True: the next look may come at once. So it is for the first `spins` looks since the last
    // reset.
    bool spins() noexcept {
        if (steps_ >= policy_.spins) return false;
        ++steps_;
        return true;
    }
    // As rest(), for a thread that cannot know whether what it waited for has come. A yield that
    // nobody took up means that the CPU is free, and begins the ladder anew.
    void rest_if_wanted() noexcept;
    // Is it time to sleep rather than to rest? For threads that can be woken. Once true, they rest
    // no more.
    bool wants_sleep() const noexcept;
    // As rest(), where more threads wait than there are CPUs. 16 looks, about 1 us, see most
    // answers of a near neighbour without two context switches: 7.0 against 4.7 million messages/s
    // with 2 threads a core. 64 looks gain no more, and cost 8 threads a fifth.
    void rest_in_crowd() noexcept {
        if (++steps_ % 16 == 0) give_way();
    }
    void reset() noexcept { steps_ = 0; }
    void end_spins() noexcept { steps_ = std::max(steps_, policy_.spins); }
    static void give_way() noexcept;  // one sched_yield, for loops that are not ours

  private:
    void climb() noexcept;
    const WaitPolicy& policy_;
    uint32_t steps_ = 0;
};

// When looks of the program's own loops give the CPU away, where ranks share CPUs: after 1, 2, 4
// and more of them in vain, until something comes. A loop that does nothing else keeps the CPU for
// some 20 us at a time then. One that works between its looks, perhaps millions of them, is not
// held up: HPCC's RandomAccess had a tenth of plain's rate where each MPI_Testany yielded.
class FailingLooks {
  public:
    bool one_more() noexcept {  // true: give it away now
        if (++looks_ < gap_) return false;
        looks_ = 0;
        if (gap_ < longest_gap) gap_ *= 2;
        return true;
    }
    void end() noexcept {
        looks_ = 0;
        gap_ = 1;
    }

  private:
    static constexpr uint32_t longest_gap = 256;
    uint32_t looks_ = 0, gap_ = 1;
};

// Parks until the word differs from `expected`, a wake, or the timeout (0: none). Inside one
// process only.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_us) noexcept;
void futex_wake_all(std::atomic<uint32_t>& word) noexcept;

}  // namespace vecmpi::base
