// SPDX-License-Identifier: BSD-3-Clause
// The offload thread: its start and end, its loop, and how it rests.
#include "offload_thread.hpp"

#include <signal.h>

#include <utility>

#include "engine.hpp"
#include "poll_interval.hpp"

namespace vecmpi::offload {

namespace {

// Looks that find nothing before the thread rests between looks. With a CPU of its own about 10 ms:
// a program that posts once in an iteration then pays no wake (3 to 20 us). Without one none, or
// the program would lose its CPU to the thread. After 0.2 ms the thread yields now and then: its
// CPU may be wanted by the rank whose message it waits for, which must not wait for a whole time
// slice.
constexpr uint32_t own_cpu_looks = 150000, looks_before_yields = 4000, looks_between_yields = 16;

// Until the thread tries again to have its CPU for itself.
constexpr uint64_t patience_us = 5000000;

}  // namespace

// ---- from other threads -------------------------------------------------------------------------

bool OffloadThread::start(const OffloadPlan& plan) noexcept {
    plan_ = plan;
    cpu_.store(plan.own_cpu ? ThreadCpu::own : ThreadCpu::shared, std::memory_order_relaxed);
    fences_are_asymmetric_ = asymmetric_fences_work();
    own_floats_ = float_environment();  // a new thread has its maker's
    floats_.store(own_floats_, std::memory_order_relaxed);
    duty_.store(Duty::serve, std::memory_order_relaxed);
    sigset_t all, before;  // the program's signals belong to the program's threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool made = pthread_create(&thread_, nullptr, entry, this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!made) duty_.store(Duty::none, std::memory_order_relaxed);
    return made;
}

void OffloadThread::stop() noexcept {
    if (!exists()) return;
    duty_.store(Duty::end, std::memory_order_seq_cst);
    rest_.store(awake, std::memory_order_seq_cst);
    futex_wake_all(rest_);
    pthread_join(thread_, nullptr);
    duty_.store(Duty::none, std::memory_order_relaxed);
}

void OffloadThread::let_stand_back() noexcept {
    Duty now = duty_.load(std::memory_order_acquire);
    if (now == Duty::none || now == Duty::stood_back) return;
    if (now == Duty::serve &&
        duty_.compare_exchange_strong(now, Duty::stand_back, std::memory_order_seq_cst))
        count(Counter::decline_operator_lock);
    if (is_reentrant()) return;
    // Pairs with wake(): this thread sees the command, or the poster sees the new duty.
    heavy_fence(fences_are_asymmetric_);
    const WaitingCaller caller(engine_);
    engine_.rest_until([this]() noexcept { return engine_.try_own(); });
    engine_.as_owner([this]() noexcept { engine_.drain(); });
    now = Duty::stand_back;
    duty_.compare_exchange_strong(now, Duty::stood_back, std::memory_order_release);
}

void OffloadThread::wake() noexcept {
    if (!exists()) return;
    // Pairs with park_if_idle(): either it sees the command, or this thread sees it parked.
    light_fence(fences_are_asymmetric_);
    const uint32_t rest = rest_.load(std::memory_order_relaxed);
    // An interval on a shared CPU is not cut short: the wake costs the program more than it gains.
    if (rest == parked || (rest == between_polls && has_own_cpu())) {
        rest_.store(awake, std::memory_order_relaxed);
        futex_wake_all(rest_);
    }
    library::wake_sleepers();  // program threads that look in its place
}

void OffloadThread::compute_as(const FloatEnvironment& floats) noexcept {
    floats_.store(floats, std::memory_order_relaxed);
    if (this_thread.is_offload_thread) set_float_environment(own_floats_ = floats);
}

// ---- the thread itself --------------------------------------------------------------------------

void* OffloadThread::entry(void* thread) noexcept {
    static_cast<OffloadThread*>(thread)->run();
    return nullptr;
}

void OffloadThread::run() noexcept {
    pthread_setname_np(pthread_self(), "vecmpi");
    if (plan_.cpu >= 0) keep_this_thread_on({plan_.cpu});
    this_thread.is_offload_thread = true;
    const Within library(Inside::library);  // whatever runs here is the library's or a callback's
    uint32_t looks_in_vain = 0;
    uint64_t posted_before = 0;
    PollInterval interval;
    CrowdedCpu crowd(patience_us);
    while (duty() != Duty::end) {
        if (look()) {
            looks_in_vain = 0;
            interval.restart();
        } else if (has_own_cpu() && looks_in_vain < own_cpu_looks) {
            cpu_pause();
            if (++looks_in_vain > looks_before_yields && looks_in_vain % looks_between_yields == 0)
                Ladder::give_way();
            if (crowd.noticed()) share_cpu();
        } else if (has_own_cpu() && posts_since(&posted_before)) {
            looks_in_vain = 0;  // the program posts, and completes that itself while it waits
        } else {
            const bool command =
                park_if_idle() ||
                rest_between_polls(interval.next_us(std::exchange(library::library_events, 0)));
            crowd.slept();
            if (command) {
                looks_in_vain = 0;  // more may come
                posts_since(&posted_before);
            } else if (plan_.own_cpu && !has_own_cpu() && crowd.may_be_over()) {
                claim_cpu();
            }
        }
    }
}

// Not where somebody else has moved the thread meanwhile, or the system no longer gives it that
// CPU.
void OffloadThread::claim_cpu() noexcept {
    if (!this_thread_is_on(plan_.mask)) return;
    if (plan_.cpu >= 0 && !keep_this_thread_on({plan_.cpu})) return;
    cpu_.store(ThreadCpu::own, std::memory_order_relaxed);
    log_line(LogLevel::info, "offload thread: tries again to have CPU %d for itself", plan_.cpu);
}

// Others want the CPU: other jobs, threads that we do not know, hosts that share a machine.
void OffloadThread::share_cpu() noexcept {
    cpu_.store(ThreadCpu::shared, std::memory_order_relaxed);
    keep_this_thread_on(plan_.mask);
    count(Counter::thread_shares);
    log_line(LogLevel::info,
             "offload thread: CPU %d is wanted by others, so it rests between looks for some time",
             plan_.cpu);
}

// One look, unless a program thread runs the loop itself or there is nothing to do. True if
// something moved.
bool OffloadThread::look() noexcept {
    if (engine_.somebody_waits() || !engine_.has_work() || !engine_.try_own()) return false;
    const FloatEnvironment floats = floats_.load(std::memory_order_relaxed);
    if (floats != own_floats_) set_float_environment(own_floats_ = floats);
    return engine_.as_owner([this]() noexcept {
        if (!stands_back()) return engine_.step();
        return !engine_.facts.callers_serve_jobs && advance_jobs();
    });
}

// Sleeps until wake() or stop(), if there is nothing to do. Decides as the owner and when all is
// issued: no command is then between queue and window. True if it slept.
bool OffloadThread::park_if_idle() noexcept {
    if (!engine_.is_idle() || !engine_.try_own()) return false;
    rest_.store(parked, std::memory_order_relaxed);
    // Pairs with wake(). Where the kernel refuses the fence (a sandbox of the program), a command
    // may be missed. Then the sleep is short.
    const uint64_t limit_us = heavy_fence(fences_are_asymmetric_) ? 0 : 1000;
    const bool busy = !engine_.is_idle() || duty() == Duty::end;
    if (busy) rest_.store(awake, std::memory_order_relaxed);
    engine_.leave();
    if (busy) return false;
    count(Counter::thread_parks);
    while (rest_.load(std::memory_order_relaxed) == parked && !engine_.has_work() &&
           duty() != Duty::end)
        futex_wait(rest_, parked, limit_us);
    rest_.store(awake, std::memory_order_relaxed);
    return true;
}

// Operations have been posted since the last call. (Jobs do not count: a program that posts them
// pays a wake each 10 ms.) Not asked at each look, which would cost the next post a cache line from
// another core.
bool OffloadThread::posts_since(uint64_t* posted_before) const noexcept {
    const uint64_t posted = engine_.posted();
    return std::exchange(*posted_before, posted) != posted;
}

// Sleeps for an interval, while something is pending. True if a command ended it.
bool OffloadThread::rest_between_polls(uint64_t interval_us) noexcept {
    rest_.store(between_polls, std::memory_order_relaxed);
    // No heavy fence, which would disturb the program. A command that is missed waits for the end
    // of the interval.
    if (engine_.queue_is_empty() || !has_own_cpu())
        futex_wait(rest_, between_polls, interval_us);
    else
        Ladder::give_way();  // to the thread that keeps this one from issuing the command
    return rest_.exchange(awake, std::memory_order_relaxed) == awake;
}

}  // namespace vecmpi::offload
