// SPDX-License-Identifier: BSD-3-Clause
// The ladder of waiting, and parking on a word. Inside one process only: the futexes are private.
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

#include "base/api.hpp"

namespace vecmpi::base {
namespace {

constexpr uint32_t for_ever = UINT32_MAX;
constexpr uint64_t longest_patience_us = 60000000;  // of a thread that gave its CPU up

void sleep_us(uint64_t microseconds) noexcept {
    timespec time{static_cast<time_t>(microseconds / 1000000),
                  static_cast<long>(microseconds % 1000000 * 1000)};
    // A signal ends it early: then the caller looks again, which does no harm. By number: no point
    // of cancellation.
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
}

uint64_t nanoseconds_of(clockid_t clock) noexcept {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t microseconds_of(clockid_t clock) noexcept { return nanoseconds_of(clock) / 1000; }

// FUTEX_WAIT_BITSET takes an absolute time, so that a signal does not start the timeout again.
timespec deadline_after(uint64_t timeout_us) noexcept {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    uint64_t nanoseconds = static_cast<uint64_t>(time.tv_nsec) + timeout_us % 1000000 * 1000;
    time.tv_sec += static_cast<time_t>(timeout_us / 1000000 + nanoseconds / 1000000000);
    time.tv_nsec = static_cast<long>(nanoseconds % 1000000000);
    return time;
}

}  // namespace

uint64_t monotonic_us() noexcept { return microseconds_of(CLOCK_MONOTONIC); }

WaitPolicy wait_policy(WaitMode mode, Crowd crowd) noexcept {
    switch (mode) {
        case WaitMode::spin:
            return {.spins = 2000, .pauses = for_ever};
        case WaitMode::yield:
            return {.yields = for_ever};
        case WaitMode::sleep:
            // 20 yields keep short waits short: the kernel adds some 50 us of timer slack to each
            // sleep.
            return {.spins = 10,
                    .yields = 20,
                    .sleep_us = 20,
                    .max_sleep_us = 1000,
                    .sleeps = Sleeps::always};
        case WaitMode::automatic:
            break;
    }
    // One more look before the first yield finds what has come meanwhile. Further looks keep the
    // CPU from the rank that is waited for: a collective takes 8 to 45 ms where nobody yields, and
    // 12 to 35 us where everybody yields at once. Ranks compute and wait by turns: beside them a
    // sleep after one long yield cost LAMMPS and hypre 5 to 15 %.
    if (crowd != Crowd::none)
        return {.spins = 1,
                .yields = for_ever,
                .sleeps = Sleeps::beside_work,
                .long_yields = crowd == Crowd::of_ranks ? 4U : 1U};
    // About 0.2 ms of looks at full speed. Then yields, which cost 0.3 us on a CPU with nothing
    // else to run.
    return {.spins = 2000, .pauses = 2000, .yields = for_ever, .sleeps = Sleeps::beside_work};
}

namespace {

thread_local constinit Neighbours neighbours __attribute__((tls_model("initial-exec")));

// Returns how long it took, in ns.
uint64_t give_way_and_learn(uint32_t long_yields) noexcept {
    const uint64_t begin_ns = nanoseconds_of(CLOCK_MONOTONIC);
    sched_yield();
    const uint64_t end_ns = nanoseconds_of(CLOCK_MONOTONIC);
    neighbours.yielded((end_ns - begin_ns) / 1000, end_ns / 1000, long_yields);
    return end_ns - begin_ns;
}

}  // namespace

// A rank that works on a long message once costs us little: we soon ask again. One that computes
// all the time is asked for 1 part in 64 of its time.
void Neighbours::yielded(uint64_t took_us, uint64_t now_us, uint32_t long_yields) noexcept {
    constexpr uint64_t slice_us = 200;
    constexpr uint32_t most_doublings = 6;
    if (took_us < slice_us) {
        long_ones_ = 0;
        ask_again_us_ = 0;
        return;
    }
    long_ones_ = std::min(long_ones_ + 1, long_yields - 1 + most_doublings);
    if (long_ones_ < long_yields) return;
    ask_again_us_ = now_us + (took_us << (long_ones_ - long_yields + 1));
}

void Ladder::give_way() noexcept { sched_yield(); }

Rest next_rest(const WaitPolicy& policy, uint32_t steps, WhoWaits who) noexcept {
    // These looks take as long as a sleep and its end do. So a wait costs at most twice what it
    // would have cost with foresight (Karlin et al., Competitive randomized algorithms for
    // nonuniform problems, SODA 1990, section 2).
    constexpr uint32_t looks_worth_a_sleep = 200;
    if (who.can_be_woken && who.others_compute && policy.sleeps == Sleeps::beside_work &&
        steps >= std::min(policy.spins, looks_worth_a_sleep))
        return Rest::sleep;
    if (steps < policy.spins) return Rest::look;
    if (policy.pauses == for_ever || steps - policy.spins < policy.pauses) return Rest::pause;
    const uint32_t step = steps - policy.spins - policy.pauses;
    if (who.can_be_woken && policy.sleeps == Sleeps::always && step >= policy.yields)
        return Rest::sleep;
    return step < policy.yields || policy.sleep_us == 0 ? Rest::yield : Rest::timed_sleep;
}

bool Ladder::wants_sleep() const noexcept {
    if (policy_.sleeps == Sleeps::never) return false;
    const bool compute = policy_.sleeps == Sleeps::beside_work && neighbours.computed_lately() &&
                         neighbours.compute(monotonic_us());
    return next_rest(policy_, steps_, {.can_be_woken = true, .others_compute = compute}) ==
           Rest::sleep;
}

void Ladder::climb() noexcept {
    const auto sleep_longer = [this]() noexcept {
        const uint32_t before = steps_ - policy_.spins - policy_.pauses - policy_.yields;
        const uint64_t length_us = uint64_t{policy_.sleep_us} << std::min(before, 31U);
        if (length_us < policy_.max_sleep_us) ++steps_;  // no further, so it never overflows
        sleep_us(std::min<uint64_t>(length_us, std::max(policy_.max_sleep_us, policy_.sleep_us)));
    };
    switch (next_rest(policy_, steps_, {})) {
        case Rest::look:
        case Rest::pause:
            if (policy_.pauses != for_ever) ++steps_;
            return cpu_pause();
        case Rest::yield: {
            const uint32_t yields = steps_ - policy_.spins - policy_.pauses;
            if (policy_.yields != for_ever && yields < policy_.yields) ++steps_;
            if (policy_.sleeps == Sleeps::beside_work)
                give_way_and_learn(policy_.long_yields);
            else
                sched_yield();
            return;
        }
        case Rest::sleep:  // not chosen here, where nobody is woken
        case Rest::timed_sleep:
            return sleep_longer();
    }
}

void Ladder::rest_if_wanted() noexcept {
    // A yield that nobody takes up lasts 0.3 us, and one to another thread 2 us and more. Both take
    // several times as long while a host has little time for its guest.
    constexpr uint64_t nobody_ns = 1000, times_least = 3;
    static constinit std::atomic<uint64_t> least_ns{UINT64_MAX / times_least};
    const bool yields = policy_.yields == for_ever && steps_ == policy_.spins + policy_.pauses;
    if (!yields || policy_.spins == 0) return rest();
    const uint64_t took_ns = give_way_and_learn(policy_.long_yields);
    if (took_ns < least_ns.load(std::memory_order_relaxed))
        least_ns.store(took_ns, std::memory_order_relaxed);
    const uint64_t least = least_ns.load(std::memory_order_relaxed);
    if (took_ns < std::max(nobody_ns, times_least * least)) reset();
}

bool is_crowded(uint64_t switches, uint64_t ran_us, uint64_t elapsed_us) noexcept {
    constexpr uint64_t least_share = 5, let_in_every_us = 1000;
    const bool loses_time = elapsed_us > ran_us + elapsed_us / least_share;
    return switches * let_in_every_us > elapsed_us || (loses_time && switches != 0);
}

bool CrowdedCpu::check() noexcept {
    constexpr uint64_t span_us = 5000;
    constexpr uint32_t most_spans = 10;
    const uint64_t now_us = monotonic_us();
    const bool first = began_us_ == 0;
    if (!first && now_us - began_us_ < span_us) return false;
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const auto switches = static_cast<uint64_t>(usage.ru_nivcsw);
    const uint64_t ran_us = microseconds_of(CLOCK_THREAD_CPUTIME_ID);
    if (!first) {
        if (is_crowded(switches - switches_then_, ran_us - ran_us_then_, now_us - began_us_))
            ++crowded_spans_;
        else if (crowded_spans_ != 0)
            --crowded_spans_;
    }
    began_us_ = now_us;
    switches_then_ = switches;
    ran_us_then_ = ran_us;
    if (crowded_spans_ != most_spans) return false;
    crowded_spans_ = 0;
    noticed_us_ = now_us;
    if (now_us - tried_us_ > longest_patience_us) patience_us_ = first_patience_us_;
    return true;
}

bool CrowdedCpu::may_be_over() noexcept {
    const uint64_t now_us = monotonic_us();
    if (now_us - noticed_us_ < patience_us_) return false;
    patience_us_ = std::min(2 * patience_us_, longest_patience_us);
    tried_us_ = now_us;
    began_us_ = 0;
    return true;
}

bool asymmetric_fences_work() noexcept {
    static const bool work =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    return work;
}

bool heavy_fence(bool asymmetric) noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return !asymmetric || syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_us) noexcept {
    static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
    timespec deadline{};
    if (timeout_us != 0) deadline = deadline_after(timeout_us);
    // Acquire: pairs with the release store of whoever changed the word before futex_wake_all.
    while (word.load(std::memory_order_acquire) == expected) {
        long result = syscall(
            SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_BITSET_PRIVATE, expected,
            timeout_us != 0 ? &deadline : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
        if (result == 0 || errno != EINTR) return;
    }
}

void futex_wake_all(std::atomic<uint32_t>& word) noexcept {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
            nullptr, 0);
}

}  // namespace vecmpi::base
