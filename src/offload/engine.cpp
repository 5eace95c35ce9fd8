// SPDX-License-Identifier: BSD-3-Clause
// The engine's ownership, queue and window.
#include "engine.hpp"

#include "statuses.hpp"

namespace vecmpi::offload {

thread_local constinit ThreadState this_thread;
Engine* engine = nullptr;

namespace {

// Looks at the count of issued operations before a thread issues the rest itself. Mostly the owner
// is at it.
constexpr int looks_before_draining = 100;

// What a persistent slot issues: X_init has made the request.
int issue_start(const void*, MPI_Request* mpi_request) noexcept { return real.Start(mpi_request); }

// True if it is complete at once. MPICH takes a started request with MPI_PROC_NULL for inactive, so
// Testsome would never report it.
bool complete_on_start(MPI_Request* mpi_request, MPI_Status* status, int* error) noexcept {
    int flag = 0;
    *error = real.Test(mpi_request, &flag, status);
    return flag != 0 || *error != MPI_SUCCESS;
}

}  // namespace

// ---- how a wait rests ---------------------------------------------------------------------------

// A write to shared memory may end this wait, or a job.
bool Engine::waits_for_node(WaitsFor waits_for) const noexcept {
    return waits_for == WaitsFor::memory ||
           library::jobs_on_memory.load(std::memory_order_relaxed) != 0;
}

// All that the thread waits for can wake it. One that waits for memory may sleep even where
// messages wake nobody: messages are others' business then, and it looks at them each
// longest_sleep_us.
bool Engine::can_be_woken(WaitsFor waits_for) const noexcept {
    if (waits_for_node(waits_for) && !has_door()) return false;
    if (library::library_wakes() || waits_for == WaitsFor::memory) return true;
    const uint32_t on_memory = library::jobs_on_memory.load(std::memory_order_relaxed);
    return on_memory != 0 && on_memory == library::jobs_under_way.load(std::memory_order_relaxed) &&
           window_.empty();
}

// A thread that does not own the engine polls nothing. So nothing is armed, and it rests.
void Engine::rest_or_sleep(Ladder& ladder, SleepingWait& sleeper,
                           WaitsFor waits_for) const noexcept {
    if (!ladder.wants_sleep() || !can_be_woken(waits_for) || !library::sleep_pays())
        return rest(ladder);
    if (!library::library_wakes() && sleeper.library_moved()) return ladder.reset();
    if (!sleeper.sleep() && sleeper.is_refused_often()) rest(ladder);
    sleeper.prepare(waits_for_node(waits_for));
}

// ---- ownership and the queue --------------------------------------------------------------------

bool Engine::own() noexcept {
    if (callers_complete()) return false;
    if (try_own()) return true;
    const WaitingCaller caller(*this);
    bool owned = false;
    rest_until([&]() noexcept {
        owned = try_own();
        return owned || callers_complete();
    });
    return owned;
}

void Engine::let_callers_complete() noexcept {
    if (is_reentrant() || !own()) return;
    as_owner([this]() noexcept {
        pending_for_ever();
        completer_.store(Completer::callers, std::memory_order_release);  // see callers_complete()
    });
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
        if (try_own()) return as_owner([this]() noexcept { drain(); });
        if (look >= looks_before_draining) drain_unowned();
        rest(ladder);
    }
}

Engine::IssueScope::IssueScope(Engine& engine) noexcept
    : engine_(engine), nested_(this_thread.is(Inside::issuing)) {
    if (!nested_) engine_.rest_until([this]() noexcept { return engine_.try_issue(); });
}

Engine::IssueScope::~IssueScope() {
    if (!nested_) engine_.issuing_.store(0, std::memory_order_release);
}

// Nothing where another thread has the right to issue.
void Engine::drain_unowned() noexcept {
    if (!try_issue()) return;
    const Within library(Inside::library | Inside::issuing);
    drain_queue();
    issuing_.store(0, std::memory_order_release);
}

void Engine::push(Slot* slot) noexcept {
    slot->state.store(SlotState::posted, std::memory_order_relaxed);
    // Relaxed: readers that must see it come after this call, in this thread or by what orders the
    // program's calls.
    if (queue_.has_many_producers())
        posted_.fetch_add(1, std::memory_order_relaxed);
    else
        posted_.store(posted_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    queue_.push(static_cast<uint16_t>(pool.index(slot)));
    thread.wake();
}

// A loop, where as_owner() would come back here for what is queued meanwhile.
void Engine::issue_left_over() noexcept {
    while (!queue_.empty() && try_own()) {
        {
            const Within owner(Inside::library | Inside::engine);
            drain();
        }
        owned_.exchange(0, std::memory_order_seq_cst);
    }
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
        return unowned([&](bool) noexcept {
            if (slot) ask(slot);
            return false;
        });
    if (this_thread.is(Inside::engine)) return step();
    return has_work() && try_own() && as_owner([this]() noexcept { return step(); });
}

void Engine::issue(Slot* slot) noexcept {
    if (slot->takes_floats) thread.compute_as(slot->floats);
    const IssueFunction issue_function = slot->persistent ? issue_start : slot->issue;
    int error = issue_function(slot->arguments, &slot->mpi_request);
    count(Counter::issued_by_owner);
    if (error != MPI_SUCCESS || slot->mpi_request == MPI_REQUEST_NULL) {
        set_empty(&slot->status);
        return complete(slot, error);
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
    end(slot, error);
    slot->error = error;
    slot->state.store(SlotState::done, std::memory_order_release);
}

void Engine::end(Slot* slot, int error) noexcept {
    if (!slot->has_ending) return;
    slot->has_ending = false;
    const std::unique_ptr<Ending> ending(slot->ending);
    ending->complete(slot->status, error);
}

void Engine::adopt(Slot* slot) noexcept {
    const auto add = [this, slot]() noexcept {
        const IssueScope right(*this);
        window_.add(slot, pool.index(slot));
    };
    if (this_thread.is(Inside::engine) || !own())
        add();
    else
        as_owner(add);
    thread.wake();  // MPI_Test leaves the looks to it
}

// Where callers complete, nobody asks for a request that the program has freed.
void Engine::ask_forgotten() noexcept {
    if (!try_issue()) return;
    const Within library(Inside::library | Inside::issuing);
    for (uint32_t i = window_.size(); i-- > 0;)
        if (Slot* const slot = pool.at(window_.slot_index(i));
            slot->forgotten.load(std::memory_order_acquire)) {
            const AskScope scope(*slot);
            if (scope.is_ours_while(SlotState::active)) test(slot);
        }
    issuing_.store(0, std::memory_order_release);
}

// Takes a complete slot out of the window and stores its result.
void Engine::finish(Slot* slot, const MPI_Status& status, int error) noexcept {
    forget(slot);
    slot->status = status;
    if (!slot->persistent) slot->mpi_request = MPI_REQUEST_NULL;
    if (!slot->forgotten.load(std::memory_order_relaxed)) return complete(slot, error);
    const uint32_t freed = slot->has_ending ? 1 : 0;
    end(slot, error);
    freed_endings.fetch_sub(freed, std::memory_order_release);
    if (slot->persistent) real.Request_free(&slot->mpi_request);
    pool.give(slot);
}

// Asks the library for an active request. One that it refuses is complete with that error, so that
// nobody waits for it for ever.
bool Engine::test(Slot* slot) noexcept {
    MPI_Status status = {};
    int flag = 0;
    const int error = real.Test(&slot->mpi_request, &flag, &status);
    if (flag == 0 && error == MPI_SUCCESS) return false;
    finish(slot, status, error);
    return true;
}

// From the end: finish() puts the last one of the window into the place of the one that leaves.
void Engine::test_one_by_one(const RequestWindow::Part& part) noexcept {
    owner_at_ = OwnerAt::testsome;
    for (int i = part.count - 1; i >= 0; --i) test(pool.at(part.slots[i]));
    owner_at_ = OwnerAt::loop;
}

bool Engine::is_complete(Slot* slot) noexcept {
    const SlotState state = state_of(slot);
    if (state == SlotState::done || state == SlotState::inactive) return true;
    if (state != SlotState::active || slot->is_job) return false;
    // The data are there when the ending has run. In a poll function of the program no message can
    // be completed: it may trust them after a Test or Wait.
    const bool ends_here = !is_reentrant() && !has_seen(RequestKind::generalized);
    // The library's request stays what it is while no other thread may complete it.
    const auto library_says = [this, slot, ends_here]() noexcept {
        const AskScope scope(*slot);
        if (!scope.is_ours_while(SlotState::active)) return state_of(slot) == SlotState::done;
        if (slot->has_ending && ends_here) return test(slot);
        return real.X_Request_is_complete(slot->mpi_request) != 0;
    };
    if (this_thread.is(Inside::engine) || callers_complete()) return library_says();
    return try_own() && as_owner(library_says);  // else the owner finds out
}

void Engine::ask(Slot* slot) noexcept {
    if (slot->is_job || state_of(slot) != SlotState::active) return;  // unowned() looked at jobs
    const AskScope scope(*slot);
    if (scope.is_ours_while(SlotState::active)) test(slot);
}

// Tests a request that is never complete: the library makes progress, and completes no request of
// the program.
bool Engine::progress_only() noexcept {
    const uint64_t before = library::library_events;
    poll_library();
    return library::library_events != before;
}

// Testsome of MPICH 4.3, MPICH 5 and Intel MPI loses the error of a persistent request: it says
// that some request failed, and not which. Testany says it of each.
bool Engine::poll_by_testany(const RequestWindow::Part& part) noexcept {
    bool found = false;
    for (int left = part.count; left > 0; --left) {
        int index = MPI_UNDEFINED, flag = 0;
        MPI_Status status = {};
        owner_at_ = OwnerAt::testsome;
        const int rc = real.Testany(left, part.requests, &index, &flag, &status);
        owner_at_ = OwnerAt::loop;
        if (flag == 0 && rc != MPI_SUCCESS) {  // it refused them all
            test_one_by_one({left, part.requests, part.slots});
            return true;
        }
        if (flag == 0 || index == MPI_UNDEFINED) break;
        const IssueScope right(*this);
        finish(pool.at(part.slots[index]), status, rc);
        found = true;
    }
    return found;
}

// 1. One Testsome over the next testsome_window requests. 2. Completed slots, found before any of
// them leaves the window, get status and error.
bool Engine::poll() noexcept {
    if (window_.size() == 0 || is_polling()) return false;
    if (callers_complete()) [[unlikely]]
        return progress_only();
    const RequestWindow::Part part = window_.next_part();
    if (window_.has_persistent()) return poll_by_testany(part);
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
