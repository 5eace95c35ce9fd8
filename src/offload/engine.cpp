// SPDX-License-Identifier: BSD-3-Clause
// The engine's ownership, queue and window.
#include "engine.hpp"

namespace vecmpi::offload {

thread_local constinit ThreadState this_thread;
Engine* engine = nullptr;

namespace {

// A thread that needs everything issued leaves that to the owner for so long: mostly it is at it.
constexpr int looks_before_issuing_beside_owner = 100;

// What a persistent slot issues: the request was made by X_init and is started again.
int issue_start(const void*, MPI_Request* mpi_request) noexcept { return real.Start(mpi_request); }

// Complete at once? MPICH takes a started request with MPI_PROC_NULL for inactive, and Testsome
// never reports it.
bool complete_on_start(MPI_Request* mpi_request, MPI_Status* status, int* error) noexcept {
    int flag = 0;
    *error = real.Test(mpi_request, &flag, status);
    return flag != 0 || *error != MPI_SUCCESS;
}

}  // namespace

// ---- how a wait rests ---------------------------------------------------------------------------

// A job may be ended by memory too.
bool Engine::waits_for_node(WaitsFor waits_for) const noexcept {
    return waits_for == WaitsFor::memory ||
           library::jobs_on_memory.load(std::memory_order_relaxed) != 0;
}

// By all that it waits for. What wakes nobody is looked for once in longest_sleep_us, which is
// enough for who waits for memory: the library's messages are others' then.
bool Engine::can_be_woken(WaitsFor waits_for) const noexcept {
    if (waits_for_node(waits_for) && !has_door()) return false;
    if (library::library_wakes() || waits_for == WaitsFor::memory) return true;
    const uint32_t on_memory = library::jobs_on_memory.load(std::memory_order_relaxed);
    return on_memory != 0 && on_memory == library::jobs_under_way.load(std::memory_order_relaxed) &&
           window_.empty();
}

// Who does not own the engine polls nothing, so nothing is armed, and it rests.
void Engine::rest_or_sleep(Ladder& ladder, SleepingWait& sleeper,
                           WaitsFor waits_for) const noexcept {
    if (!ladder.wants_sleep() || !can_be_woken(waits_for)) return rest(ladder);
    if (!library::library_wakes() && sleeper.library_moved()) return ladder.reset();
    if (!sleeper.sleep() && sleeper.is_refused_often()) rest(ladder);
    sleeper.lie_down(waits_for_node(waits_for));
}

// ---- ownership and the queue --------------------------------------------------------------------

bool Engine::own() noexcept {
    if (callers_complete()) return false;
    if (try_own()) return true;
    const WaitingCaller caller(*this);
    Ladder ladder(facts.wait);
    while (!try_own()) {
        if (callers_complete()) return false;
        rest(ladder);
    }
    return true;
}

void Engine::let_callers_complete() noexcept {
    if (!facts.queues || is_reentrant() || !own()) return;
    {
        const Within owner(as_owner);
        pending_for_ever();
    }
    // Pairs with callers_complete().
    completer_.store(Completer::callers, std::memory_order_release);
    leave();
}

void Engine::begin_with_callers() noexcept {
    const Within library(Inside::library);
    pending_for_ever();
    completer_.store(Completer::callers, std::memory_order_relaxed);
}

void Engine::wait_until_issued() noexcept {
    if (all_issued()) return;
    const WaitingCaller caller(*this);
    Ladder ladder(facts.wait);
    for (int look = 0; !all_issued(); ++look) {
        if (try_own()) {
            {
                const Within owner(as_owner);
                drain();
            }
            return leave();
        }
        if (look >= looks_before_issuing_beside_owner && try_issue()) issue_beside_owner();
        rest(ladder);
    }
}

Engine::IssueScope::IssueScope(Engine& engine) noexcept
    : engine_(engine), nested_(this_thread.is(Inside::issuing)) {
    if (nested_) return;
    Ladder ladder(engine_.facts.wait);
    while (!engine_.try_issue()) engine_.rest(ladder);
}

Engine::IssueScope::~IssueScope() {
    if (!nested_) engine_.issuing_.store(0, std::memory_order_release);
}

// With the right to issue, which it gives back.
void Engine::issue_beside_owner() noexcept {
    const Within library(Inside::library | Inside::issuing);
    drain_queue();
    issuing_.store(0, std::memory_order_release);
}

void Engine::push(Slot* slot) noexcept {
    slot->state.store(SlotState::posted, std::memory_order_relaxed);
    // Relaxed: who must see it comes after this thread's call, by this thread or by what orders its
    // calls.
    if (queue_.has_many_producers())
        posted_.fetch_add(1, std::memory_order_relaxed);
    else
        posted_.store(posted_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    queue_.push(static_cast<uint16_t>(pool.index(slot)));
    thread.wake();
}

void Engine::issue_left_over() noexcept {
    do {
        if (!try_own()) return;
        {
            const Within owner(as_owner);
            drain();
        }
        owned_.exchange(0, std::memory_order_seq_cst);
    } while (!queue_.empty());
}

bool Engine::drain_queue() noexcept {
    const IssueScope right(*this);
    bool any = false;
    uint16_t index;
    while (queue_.pop(index)) {
        issue(pool.at(index));
        issued_.store(issued_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        any = true;
    }
    return any;
}

bool Engine::step() noexcept {
    const bool drained = drain();
    const bool completed = poll();
    return advance_jobs() || completed || drained;
}

bool Engine::look(Slot* slot) noexcept {
    if (callers_complete())
        return beside_owner([&](bool) noexcept {
            if (slot) ask(slot);
            return false;
        });
    if (this_thread.is(Inside::engine)) return step();
    if (!has_work() || !try_own()) return false;
    bool moved;
    {
        const Within owner(as_owner);
        moved = step();
    }
    leave();
    return moved;
}

void Engine::issue(Slot* slot) noexcept {
    if (slot->takes_floats) thread.compute_as(slot->floats);
    const IssueFunction issue_function = slot->persistent ? issue_start : slot->issue;
    int error = issue_function(slot->arguments, &slot->mpi_request);
    count(Counter::issued_by_owner);
    if (error != MPI_SUCCESS || slot->mpi_request == MPI_REQUEST_NULL) {
        MPI_Request none = MPI_REQUEST_NULL;
        int flag;
        real.Test(&none, &flag, &slot->status);  // the library's own empty status
        complete(slot, error);
        return;
    }
    if (slot->persistent && complete_on_start(&slot->mpi_request, &slot->status, &error))
        return complete(slot, error);
    window_.add(slot, pool.index(slot));
}

void Engine::forget(Slot* slot) noexcept {
    const IssueScope right(*this);
    window_.remove(slot, pool);
}

void Engine::reset() noexcept {
    window_.reset();
    completer_.store(Completer::owner, std::memory_order_relaxed);
    forget_kind(RequestKind::virtual_persistent);
    posted_.store(0, std::memory_order_relaxed);
    issued_.store(0, std::memory_order_relaxed);
}

void Engine::complete(Slot* slot, int error) noexcept {
    slot->error = error;
    slot->state.store(SlotState::done, std::memory_order_release);
}

// An active slot is complete: out of the window, result in the slot.
void Engine::finish(Slot* slot, const MPI_Status& status, int error) noexcept {
    forget(slot);
    slot->status = status;
    if (!slot->persistent) slot->mpi_request = MPI_REQUEST_NULL;
    if (!slot->forgotten) return complete(slot, error);
    if (slot->persistent) real.Request_free(&slot->mpi_request);
    pool.give(slot);
}

// Those that the library refuses are complete with its error, so that nobody waits for them for
// ever.
bool Engine::test_one_by_one(const RequestWindow::Part& part) noexcept {
    bool moved = false;
    for (int i = part.count - 1; i >= 0; --i) {
        Slot* slot = pool.at(part.slots[i]);
        MPI_Status status = {};
        int flag = 0;
        owner_at_ = OwnerAt::testsome;
        const int error = real.Test(&slot->mpi_request, &flag, &status);
        owner_at_ = OwnerAt::loop;
        if (flag == 0 && error == MPI_SUCCESS) continue;
        finish(slot, status, error);
        moved = true;
    }
    return moved;
}

bool Engine::is_complete(const Slot* slot) noexcept {
    const SlotState state = slot->state.load(std::memory_order_acquire);
    if (state == SlotState::done || state == SlotState::inactive) return true;
    if (state != SlotState::active || slot->is_job) return false;
    const auto library_says = [slot]() noexcept {
        return slot->state.load(std::memory_order_acquire) == SlotState::done ||
               real.X_Request_is_complete(slot->mpi_request) != 0;
    };
    // The library's request stays what it is while no other thread may complete it.
    if (this_thread.is(Inside::engine) || callers_complete()) return library_says();
    if (!try_own()) return false;  // who owns the engine finds out
    const bool complete = library_says();
    leave();
    return complete;
}

void Engine::ask(Slot* slot) noexcept {
    if (slot->is_job) return;  // beside_owner() has looked
    if (slot->state.load(std::memory_order_acquire) != SlotState::active) return;
    MPI_Status status = {};
    int flag = 0;
    const int error = real.Test(&slot->mpi_request, &flag, &status);
    if (flag != 0 || error != MPI_SUCCESS) finish(slot, status, error);
}

// A look at a request that is never complete: the library goes on with all, and takes none.
bool Engine::progress_only() noexcept {
    const uint64_t before = library::library_events;
    poll_library();
    return library::library_events != before;
}

// 1. One Testsome over the next testsome_window requests. 2. Completed slots, found before any of
// them leaves the window, get status and error.
bool Engine::poll() noexcept {
    if (window_.size() == 0 || is_polling()) return false;
    if (callers_complete()) [[unlikely]]
        return progress_only();
    const RequestWindow::Part part = window_.next_part();
    int completed = 0;
    int indices[testsome_window];
    MPI_Status statuses[testsome_window];
    owner_at_ = OwnerAt::testsome;
    const int rc = real.Testsome(part.count, part.requests, &completed, indices, statuses);
    owner_at_ = OwnerAt::loop;
    if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS) {  // it refused them all
        test_one_by_one(part);
        return true;
    }
    if (completed == MPI_UNDEFINED || completed <= 0) return false;
    const IssueScope right(*this);
    Slot* finished[testsome_window];
    for (int i = 0; i < completed; ++i) finished[i] = pool.at(part.slots[indices[i]]);
    for (int i = 0; i < completed; ++i)
        finish(finished[i], statuses[i], rc == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : rc);
    return true;
}

}  // namespace vecmpi::offload
