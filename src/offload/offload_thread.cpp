// SPDX-License-Identifier: BSD-3-Clause
// The offload thread's life, its loop, and how it rests.
#include "offload_thread.hpp"

#include <signal.h>

#include <utility>

#include "engine.hpp"
#include "naps.hpp"

namespace vecmpi::offload {

namespace {

// Looks in vain before the thread rests between looks: about 10 ms with a CPU of its own, so that a
// program that posts once in an iteration pays no wake (3 to 20 us). None without a CPU of its own,
// or the program would lose its CPU to it. After 0.2 ms it yields now and then: who wants its CPU
// may be a rank whose message it waits for, and must not wait for the end of a time slice.
constexpr uint32_t own_cpu_looks = 150000, looks_before_yields = 4000, looks_between_yields = 16;

// Until the thread tries again to have a crowded CPU for itself.
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
    // Pairs with wake(): we see the command, or its thread our word.
    heavy_fence(fences_are_asymmetric_);
    const WaitingCaller caller(engine_);
    for (Ladder ladder(engine_.facts.wait); !engine_.try_own();) engine_.rest(ladder);
    {
        const Within owner(as_owner);
        engine_.drain();
    }
    engine_.leave();
    now = Duty::stand_back;
    duty_.compare_exchange_strong(now, Duty::stood_back, std::memory_order_release);
}

void OffloadThread::wake() noexcept {
    if (!exists()) return;
    // Pairs with park_if_idle(): either it sees the command or we see it parked.
    light_fence(fences_are_asymmetric_);
    const uint32_t rest = rest_.load(std::memory_order_relaxed);
    // A short rest on a shared CPU is left alone: the wake costs the program more than it gains.
    if (rest == parked || (rest == dozing && has_own_cpu())) {
        rest_.store(awake, std::memory_order_relaxed);
        futex_wake_all(rest_);
    }
    library::wake_sleepers();  // those of the program's that look in its place
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
    Naps naps;
    CrowdedCpu crowd(patience_us);
    while (duty() != Duty::end) {
        if (turn()) {
            looks_in_vain = 0;
            naps.restart();
        } else if (has_own_cpu() && looks_in_vain < own_cpu_looks) {
            cpu_pause();
            if (++looks_in_vain > looks_before_yields && looks_in_vain % looks_between_yields == 0)
                Ladder::give_way();
            if (crowd.noticed()) share_cpu();
        } else if (has_own_cpu() && posts_since(&posted_before)) {
            looks_in_vain = 0;  // the program posts, and runs that itself while it waits
        } else {
            const bool command =
                park_if_idle() || doze(naps.next_us(std::exchange(library::library_events, 0)));
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

// Not where somebody else has moved the thread meanwhile, nor where the system no longer gives that
// CPU.
void OffloadThread::claim_cpu() noexcept {
    if (!this_thread_is_on(plan_.mask)) return;
    if (plan_.cpu >= 0 && !keep_this_thread_on({plan_.cpu})) return;
    cpu_.store(ThreadCpu::own, std::memory_order_relaxed);
    log_line(LogLevel::info, "offload thread: tries again to have CPU %d for itself", plan_.cpu);
}

// The CPU was not ours alone after all: other jobs, threads that nobody told us of, hosts that
// share a machine.
void OffloadThread::share_cpu() noexcept {
    cpu_.store(ThreadCpu::shared, std::memory_order_relaxed);
    keep_this_thread_on(plan_.mask);
    count(Counter::thread_shares);
    log_line(LogLevel::info,
             "offload thread: CPU %d is wanted by others, so it rests between looks for some time",
             plan_.cpu);
}

// One look, unless a program thread runs the loop itself or there is nothing to do.
bool OffloadThread::turn() noexcept {
    if (engine_.somebody_waits() || !engine_.has_work() || !engine_.try_own()) return false;
    bool moved;
    const FloatEnvironment floats = floats_.load(std::memory_order_relaxed);
    if (floats != own_floats_) set_float_environment(own_floats_ = floats);
    {
        const Within owner(as_owner);
        moved =
            stands_back() ? !engine_.facts.callers_serve_jobs && advance_jobs() : engine_.step();
    }
    engine_.release();
    return moved;
}

// Sleeps until wake() or stop(), if there is nothing to do. Decided as the owner, and when
// all is issued: nothing is then on its way from the queue to the window.
bool OffloadThread::park_if_idle() noexcept {
    if (engine_.has_work() || !engine_.all_issued() || !engine_.try_own()) return false;
    rest_.store(parked, std::memory_order_relaxed);
    // Pairs with wake(). Where the kernel refuses it (a sandbox of the program's) a command may
    // slip through: then the sleep is short.
    const uint64_t limit_us = heavy_fence(fences_are_asymmetric_) ? 0 : 1000;
    const bool busy = !engine_.all_issued() || engine_.has_work() || duty() == Duty::end;
    if (busy) rest_.store(awake, std::memory_order_relaxed);
    engine_.release();
    if (busy) return false;
    count(Counter::thread_parks);
    while (rest_.load(std::memory_order_relaxed) == parked && !engine_.has_work() &&
           duty() != Duty::end)
        futex_wait(rest_, parked, limit_us);
    rest_.store(awake, std::memory_order_relaxed);
    return true;
}

// Since the last call. Operations only: where the program posts jobs, a wake each 10 ms remains.
// Not at each look, which would cost the next post a line from another core.
bool OffloadThread::posts_since(uint64_t* posted_before) const noexcept {
    const uint64_t posted = engine_.posted();
    return std::exchange(*posted_before, posted) != posted;
}

// Rests between looks at what is pending. True if a command ended it.
bool OffloadThread::doze(uint64_t length_us) noexcept {
    rest_.store(dozing, std::memory_order_relaxed);
    // No heavy fence, which would disturb the program: a command that slips through waits as long
    // as the rest.
    if (engine_.queue_is_empty() || !has_own_cpu())
        futex_wait(rest_, dozing, length_us);
    else
        Ladder::give_way();  // to whom keeps us from issuing it
    return rest_.exchange(awake, std::memory_order_relaxed) == awake;
}

}  // namespace vecmpi::offload
