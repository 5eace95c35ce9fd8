// SPDX-License-Identifier: BSD-3-Clause
// The engine's loop: queue, window, and the offload thread that runs it when no program thread does.
#include "engine.hpp"

#include <signal.h>

#include <cstring>

namespace vecmpi {

thread_local constinit ThreadState this_thread;
Engine* engine = nullptr;

namespace {

// How the offload thread waits. With a CPU of its own it looks without pause for about a millisecond, then sleeps
// between looks; without one it only ever looks at intervals, or the program would lose its CPU to it.
constexpr WaitPolicy own_cpu_policy{0, 20000, 0, 20, 100};
constexpr WaitPolicy shared_cpu_policy{0, 0, 1, 50, 100};

// What a persistent slot issues: the request was made by X_init and is started again.
int issue_start(const void*, MPI_Request* mpi_request) noexcept { return real.Start(mpi_request); }

}  // namespace

void Engine::own() noexcept {
    if (try_own()) return;
    CallerInside inside(*this);
    Ladder ladder(wait);
    while (!try_own()) ladder.rest();
}

void Engine::push(Slot* slot) noexcept {
    slot->state.store(SlotState::posted, std::memory_order_relaxed);
    queue_.bounded_push(static_cast<uint16_t>(pool.index(slot)));  // as many places as slots: never full
    if (!has_thread_) return;
    // Pairs with the fence in park(): either it sees the command or we see it parked.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_relaxed) != 0) {
        parked_.store(0, std::memory_order_relaxed);
        futex_wake_all(parked_);
    }
}

bool Engine::drain() noexcept {
    bool any = false;
    uint16_t index;
    while (queue_.pop(index)) {
        issue(pool.at(index));
        any = true;
    }
    return any;
}

bool Engine::step() noexcept {
    const bool drained = drain();
    return poll() || drained;
}

void Engine::issue(Slot* slot) noexcept {
    const IssueFunction issue_function = slot->persistent ? issue_start : slot->issue;
    const int error = issue_function(slot->arguments, &slot->mpi_request);
    count(Counter::issued_by_owner);
    if (error != MPI_SUCCESS || slot->mpi_request == MPI_REQUEST_NULL) {
        MPI_Request none = MPI_REQUEST_NULL;
        int flag;
        real.Test(&none, &flag, &slot->status);  // the library's own empty status
        complete(slot, error);
        return;
    }
    const uint32_t place = active_count_.load(std::memory_order_relaxed);
    slot->window_index = place;
    window_requests_[place] = slot->mpi_request;
    window_slots_[place] = static_cast<uint16_t>(pool.index(slot));
    slot->state.store(SlotState::active, std::memory_order_release);
    active_count_.store(place + 1, std::memory_order_relaxed);
}

void Engine::forget(Slot* slot) noexcept {
    const uint32_t last = active_count_.load(std::memory_order_relaxed) - 1;
    const uint32_t place = slot->window_index;
    window_requests_[place] = window_requests_[last];
    window_slots_[place] = window_slots_[last];
    pool.at(window_slots_[place])->window_index = place;
    active_count_.store(last, std::memory_order_relaxed);
}

void Engine::complete(Slot* slot, int error) noexcept {
    slot->error = error;
    slot->state.store(SlotState::done, std::memory_order_release);
}

// 1. One Testsome over the next testsome_window requests. 2. Completed slots get status and error; they leave the
// window last first, so that the hole is always filled from behind.
bool Engine::poll() noexcept {
    const uint32_t active = active_count_.load(std::memory_order_relaxed);
    if (active == 0 || polling_) return false;
    if (cursor_ >= active) cursor_ = 0;
    const uint32_t base = cursor_;
    const auto looked_at = static_cast<int>(std::min(active - base, testsome_window));
    int completed = 0;
    int indices[testsome_window];
    MPI_Status statuses[testsome_window];
    polling_ = true;
    const int rc =
        real.Testsome(looked_at, window_requests_ + base, &completed, indices, statuses);
    polling_ = false;
    cursor_ = base + static_cast<uint32_t>(looked_at);
    if (completed == MPI_UNDEFINED || completed <= 0) return false;
    Slot* finished[testsome_window];
    for (int i = 0; i < completed; ++i)
        finished[i] = pool.at(window_slots_[base + static_cast<uint32_t>(indices[i])]);
    for (int i = 0; i < completed; ++i) {
        Slot* slot = finished[i];
        if (!slot->persistent) slot->mpi_request = MPI_REQUEST_NULL;
        slot->status = statuses[i];
        forget(slot);
        complete(slot, rc == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : rc);
    }
    return true;
}

// ---- the offload thread -----------------------------------------------------------------------

bool Engine::start_thread(const OffloadPlan& plan) noexcept {
    plan_ = plan;
    stop_.store(false, std::memory_order_relaxed);
    sigset_t all, before;  // the program's signals belong to the program's threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    has_thread_ = pthread_create(&thread_, nullptr, thread_entry, this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return has_thread_;
}

void Engine::stop_thread() noexcept {
    if (!has_thread_) return;
    stop_.store(true, std::memory_order_seq_cst);
    parked_.store(0, std::memory_order_seq_cst);
    futex_wake_all(parked_);
    pthread_join(thread_, nullptr);
    has_thread_ = false;
}

void* Engine::thread_entry(void* engine) noexcept {
    static_cast<Engine*>(engine)->thread_main();
    return nullptr;
}

void Engine::thread_main() noexcept {
    pthread_setname_np(pthread_self(), "vecmpi");
    if (plan_.cpu >= 0) pin_this_thread(plan_.cpu);
    ++this_thread.inside;  // whatever runs on this thread is the library's or a callback's
    const WaitPolicy& policy = plan_.own_cpu ? own_cpu_policy : shared_cpu_policy;
    Ladder ladder(policy);
    uint32_t idle = 0;
    while (!stop_.load(std::memory_order_relaxed)) {
        if (thread_turn()) {
            ladder.reset();
            idle = 0;
        } else if (!has_work() && ++idle > (plan_.own_cpu ? own_cpu_policy.pauses : 0)) {
            park();
            ladder.reset();
            idle = 0;
        } else {
            ladder.rest();
        }
    }
}

// One look, unless a program thread runs the loop itself or there is nothing to do.
bool Engine::thread_turn() noexcept {
    if (callers_.load(std::memory_order_relaxed) != 0 || !has_work() || !try_own()) return false;
    bool moved;
    {
        OwnerScope scope;
        moved = step();
    }
    release();
    return moved;
}

// Sleeps until push() or stop_thread(). Only ever with an empty window: active requests need looks.
void Engine::park() noexcept {
    parked_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with push()
    if (has_work() || stop_.load(std::memory_order_relaxed)) {
        parked_.store(0, std::memory_order_relaxed);
        return;
    }
    count(Counter::thread_parks);
    while (parked_.load(std::memory_order_relaxed) != 0 && !stop_.load(std::memory_order_relaxed))
        futex_wait(parked_, 1, 0);
}

}  // namespace vecmpi
