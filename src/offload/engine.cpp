// SPDX-License-Identifier: BSD-3-Clause
// The engine's loop: queue, window, and the offload thread that runs it when no program thread
// does.
#include "engine.hpp"

#include <signal.h>

#include <cstring>
#include <utility>

#include "naps.hpp"

namespace vecmpi::offload {

thread_local constinit ThreadState this_thread;
Engine* engine = nullptr;

namespace {

// How the offload thread rests, and the values of its futex word.
enum ThreadRest : uint32_t { awake, parked, dozing };

// Looks in vain before the thread rests between looks: about 10 ms with a CPU of its own, so that a
// program that posts once in an iteration pays no wake (3 to 20 us). None without a CPU of its own,
// or the program would lose its CPU to it. After 0.2 ms it yields now and then: who wants its CPU
// may be a rank whose message it waits for, and must not wait for the end of a time slice.
constexpr uint32_t own_cpu_looks = 150000, looks_before_yields = 4000, looks_between_yields = 16;

// Until the thread tries again to have a crowded CPU for itself.
constexpr uint64_t patience_us = 5000000;

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

MPI_Request start_endless_request() noexcept {
    MPI_Request request = MPI_REQUEST_NULL;
    real.Grequest_start([](void*, MPI_Status*) { return int{MPI_SUCCESS}; },
                        [](void*) { return int{MPI_SUCCESS}; },
                        [](void*, int) { return int{MPI_SUCCESS}; }, nullptr, &request);
    return request;
}

void end_endless_request(MPI_Request* request) noexcept {
    real.Grequest_complete(*request);
    real.Wait(request, MPI_STATUS_IGNORE);
}

// ---- how a wait sleeps --------------------------------------------------------------------------

void Bed::lie_down(bool at_door) noexcept {
    if (at_door) door_ = lie_down_at_door();
    if (library::library_wakes()) library::arm_next_polls();
}

void Bed::get_up() noexcept {
    if (std::exchange(door_, -1) >= 0) get_up_from_door();
}

bool Bed::sleep() noexcept {
    const bool slept = library::sleep_if_armed(library::longest_sleep_us, door_);
    get_up();
    refusals_ = slept ? 0 : refusals_ + 1;
    return slept;
}

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
           active_count_.load(std::memory_order_relaxed) == 0;
}

// Who does not own the engine polls nothing, so nothing is armed, and it rests.
void Engine::rest_or_sleep(Ladder& ladder, Bed& bed, WaitsFor waits_for) const noexcept {
    if (!ladder.wants_sleep() || !can_be_woken(waits_for)) return rest(ladder);
    if (!library::library_wakes() && bed.library_moved()) return ladder.reset();
    if (!bed.sleep() && bed.is_refused_often()) rest(ladder);
    bed.lie_down(waits_for_node(waits_for));
}

// ---- ownership and the queue --------------------------------------------------------------------

bool Engine::own() noexcept {
    if (callers_ask.load(std::memory_order_acquire)) return false;
    if (try_own()) return true;
    CallerInside inside(*this);
    Ladder ladder(wait);
    while (!try_own()) {
        if (callers_ask.load(std::memory_order_acquire)) return false;
        rest(ladder);
    }
    return true;
}

// As the owner: no Testsome over the window runs then, and none comes after. In a callback we may
// be inside one.
void Engine::let_callers_ask() noexcept {
    if (!queues || this_thread.inside != 0 || !own()) return;
    {
        OwnerScope scope;
        blocker();
    }
    callers_ask.store(true, std::memory_order_release);  // pairs with own() and run_until()
    leave();
}

// Who owns the engine afterwards sees it, nobody is in the library as the owner from before, and
// what was queued for the thread is issued. From a callback only the first: the owner may wait for
// us.
void Engine::let_thread_stand_back() noexcept {
    if (!has_thread_ || thread_stood_back_.load(std::memory_order_acquire)) return;
    if (!thread_stands_back_.exchange(true, std::memory_order_seq_cst))
        count(Counter::decline_operator_lock);
    if (this_thread.inside != 0) return;
    heavy_fence(asymmetric_);  // pairs with push(): we see the command, or its thread our word
    CallerInside inside(*this);
    Ladder ladder(wait);
    while (!try_own()) rest(ladder);
    {
        OwnerScope scope;
        drain();
    }
    leave();
    thread_stood_back_.store(true, std::memory_order_release);
}

void Engine::wait_until_issued() noexcept {
    if (all_issued()) return;
    CallerInside inside(*this);
    Ladder ladder(wait);
    for (int look = 0; !all_issued(); ++look) {
        if (try_own()) {
            {
                OwnerScope scope;
                drain();
            }
            return leave();
        }
        if (look >= looks_before_issuing_beside_owner && try_issue()) issue_beside_owner();
        rest(ladder);
    }
}

Engine::IssueScope::IssueScope(Engine& engine) noexcept
    : engine_(engine), nested_(this_thread.issues) {
    if (nested_) return;
    Ladder ladder(engine_.wait);
    while (!engine_.try_issue()) engine_.rest(ladder);
    this_thread.issues = true;
}

Engine::IssueScope::~IssueScope() {
    if (nested_) return;
    this_thread.issues = false;
    engine_.issuing_.store(0, std::memory_order_release);
}

// With the right to issue, which it gives back.
void Engine::issue_beside_owner() noexcept {
    this_thread.issues = true;
    ++this_thread.inside;
    drain_queue();
    --this_thread.inside;
    this_thread.issues = false;
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
    if (has_thread_) wake_thread();
}

// After something to do was stored.
void Engine::wake_thread() noexcept {
    light_fence(
        asymmetric_);  // pairs with park_if_idle(): either it sees the command or we see it parked
    const uint32_t rest = parked_.load(std::memory_order_relaxed);
    // A short rest on a shared CPU is left alone: the wake costs the program more than it gains.
    if (rest == parked || (rest == dozing && thread_spins())) {
        parked_.store(awake, std::memory_order_relaxed);
        futex_wake_all(parked_);
    }
    library::wake_sleepers();  // those of the program's that look in its place
}

void Engine::issue_left_over() noexcept {
    do {
        if (!try_own()) return;
        {
            OwnerScope scope;
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

bool Engine::look_meanwhile() noexcept {
    if (callers_ask.load(std::memory_order_acquire))
        return beside_owner([](bool) noexcept { return false; });
    if (!has_work() || !try_own()) return false;
    bool moved;
    {
        OwnerScope scope;
        moved = step();
    }
    leave();
    return moved;
}

// From here on the offload thread computes in the last poster's environment, as one program thread
// would, whichever thread issued the operation. A program thread that holds the engine keeps its
// own.
void Engine::compute_as(const FloatEnvironment& floats) noexcept {
    floats_.store(floats, std::memory_order_relaxed);
    if (this_thread.is_offload_thread) set_float_environment(thread_floats_ = floats);
}

void Engine::issue(Slot* slot) noexcept {
    if (slot->takes_floats) compute_as(slot->floats);
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
    const uint32_t place = active_count_.load(std::memory_order_relaxed);
    slot->window_index = place;
    window_requests_[place] = slot->mpi_request;
    window_slots_[place] = static_cast<uint16_t>(pool.index(slot));
    slot->state.store(SlotState::active, std::memory_order_release);
    active_count_.store(place + 1, std::memory_order_release);  // pairs with poll()
}

void Engine::forget(Slot* slot) noexcept {
    const IssueScope right(*this);
    const uint32_t last = active_count_.load(std::memory_order_relaxed) - 1;
    const uint32_t place = slot->window_index;
    window_requests_[place] = window_requests_[last];
    window_slots_[place] = window_slots_[last];
    pool.at(window_slots_[place])->window_index = place;
    active_count_.store(last, std::memory_order_relaxed);
}

void Engine::reset_window() noexcept {
    active_count_.store(0, std::memory_order_relaxed);
    callers_ask.store(false, std::memory_order_relaxed);
    thread_stands_back_.store(false, std::memory_order_relaxed);
    thread_stood_back_.store(false, std::memory_order_relaxed);
    virtual_persistent.store(false, std::memory_order_relaxed);
    cursor_ = 0;
    posted_.store(0, std::memory_order_relaxed);
    issued_.store(0, std::memory_order_relaxed);
}

MPI_Request Engine::blocker() noexcept {
    if (blocker_ == MPI_REQUEST_NULL) blocker_ = start_endless_request();
    return blocker_;
}

void Engine::release_blocker() noexcept {
    if (blocker_ != MPI_REQUEST_NULL) end_endless_request(&blocker_);
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
bool Engine::test_one_by_one(uint32_t base, int looked_at) noexcept {
    bool moved = false;
    for (int i = looked_at - 1; i >= 0; --i) {
        Slot* slot = pool.at(window_slots_[base + static_cast<uint32_t>(i)]);
        MPI_Status status = {};
        int flag = 0;
        polling_ = true;
        const int error = real.Test(&slot->mpi_request, &flag, &status);
        polling_ = false;
        if (flag == 0 && error == MPI_SUCCESS) continue;
        finish(slot, status, error);
        moved = true;
    }
    return moved;
}

void Engine::look(Slot* slot) noexcept {
    if (callers_ask.load(std::memory_order_acquire)) {
        beside_owner([&](bool) noexcept {
            ask(slot);
            return true;
        });
    } else if (this_thread.owns_engine) {
        step();
    } else if (try_own()) {
        {
            OwnerScope scope;
            step();
        }
        leave();
    }
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
    if (this_thread.owns_engine || callers_ask.load(std::memory_order_acquire))
        return library_says();
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
    int flag;
    real.Test(&blocker_, &flag, MPI_STATUS_IGNORE);
    return library::library_events != before;
}

// 1. One Testsome over the next testsome_window requests. 2. Completed slots, found before any of
// them leaves the window, get status and error.
bool Engine::poll() noexcept {
    const uint32_t active = active_count_.load(std::memory_order_acquire);
    if (active == 0 || polling_) return false;
    if (callers_ask.load(std::memory_order_relaxed)) [[unlikely]]
        return progress_only();
    if (cursor_ >= active) cursor_ = 0;
    const uint32_t base = cursor_;
    const auto looked_at = static_cast<int>(std::min(active - base, testsome_window));
    cursor_ = base + static_cast<uint32_t>(looked_at);
    int completed = 0;
    int indices[testsome_window];
    MPI_Status statuses[testsome_window];
    polling_ = true;
    const int rc = real.Testsome(looked_at, window_requests_ + base, &completed, indices, statuses);
    polling_ = false;
    if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS) {  // it refused them all
        test_one_by_one(base, looked_at);
        return true;
    }
    if (completed == MPI_UNDEFINED || completed <= 0) return false;
    const IssueScope right(*this);
    Slot* finished[testsome_window];
    for (int i = 0; i < completed; ++i)
        finished[i] = pool.at(window_slots_[base + static_cast<uint32_t>(indices[i])]);
    for (int i = 0; i < completed; ++i)
        finish(finished[i], statuses[i], rc == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : rc);
    return true;
}

// ---- the offload thread -----------------------------------------------------------------------

bool Engine::start_thread(const OffloadPlan& plan) noexcept {
    plan_ = plan;
    spins_.store(plan.own_cpu, std::memory_order_relaxed);
    asymmetric_ = asymmetric_fences_work();
    thread_floats_ = float_environment();  // a new thread has its maker's
    floats_.store(thread_floats_, std::memory_order_relaxed);
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
    parked_.store(awake, std::memory_order_seq_cst);
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
    if (plan_.cpu >= 0) keep_this_thread_on({plan_.cpu});
    this_thread.is_offload_thread = true;
    ++this_thread.inside;  // whatever runs on this thread is the library's or a callback's
    uint32_t looks_in_vain = 0;
    uint64_t posted_before = 0;
    Naps naps;
    CrowdedCpu crowd(patience_us);
    while (!stop_.load(std::memory_order_relaxed)) {
        if (thread_turn()) {
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
void Engine::claim_cpu() noexcept {
    if (!this_thread_is_on(plan_.mask)) return;
    if (plan_.cpu >= 0 && !keep_this_thread_on({plan_.cpu})) return;
    spins_.store(true, std::memory_order_relaxed);
    log_line(LogLevel::info, "offload thread: tries again to have CPU %d for itself", plan_.cpu);
}

// The CPU was not ours alone after all: other jobs, threads that nobody told us of, hosts that
// share a machine.
void Engine::share_cpu() noexcept {
    spins_.store(false, std::memory_order_relaxed);
    keep_this_thread_on(plan_.mask);
    count(Counter::thread_shares);
    log_line(LogLevel::info,
             "offload thread: CPU %d is wanted by others, so it rests between looks for some time",
             plan_.cpu);
}

// One look, unless a program thread runs the loop itself or there is nothing to do.
bool Engine::thread_turn() noexcept {
    if (callers_.load(std::memory_order_relaxed) != 0 || !has_work() || !try_own()) return false;
    bool moved;
    const FloatEnvironment floats = floats_.load(std::memory_order_relaxed);
    if (floats != thread_floats_) set_float_environment(thread_floats_ = floats);
    {
        OwnerScope scope;
        moved = thread_stands_back() ? !callers_serve_jobs && advance_jobs() : step();
    }
    release();
    return moved;
}

// Sleeps until push() or stop_thread(), if there is nothing to do. Decided as the owner, and when
// all is issued: nothing is then on its way from the queue to the window.
bool Engine::park_if_idle() noexcept {
    if (has_work() || !all_issued() || !try_own()) return false;
    parked_.store(parked, std::memory_order_relaxed);
    // Pairs with push(). Where the kernel refuses it (a sandbox of the program's) a command may
    // slip through: then the sleep is short.
    const uint64_t limit_us = heavy_fence(asymmetric_) ? 0 : 1000;
    const bool busy = !all_issued() || has_work() || stop_.load(std::memory_order_relaxed);
    if (busy) parked_.store(awake, std::memory_order_relaxed);
    release();
    if (busy) return false;
    count(Counter::thread_parks);
    while (parked_.load(std::memory_order_relaxed) == parked && !has_work() &&
           !stop_.load(std::memory_order_relaxed))
        futex_wait(parked_, parked, limit_us);
    parked_.store(awake, std::memory_order_relaxed);
    return true;
}

// Since the last call. Operations only: where the program posts jobs, a wake each 10 ms remains.
// Not at each look, which would cost the next post a line from another core.
bool Engine::posts_since(uint64_t* posted_before) const noexcept {
    const uint64_t posted = posted_.load(std::memory_order_relaxed);
    return std::exchange(*posted_before, posted) != posted;
}

// Rests between looks at what is pending. True if a command ended it.
bool Engine::doze(uint64_t length_us) noexcept {
    parked_.store(dozing, std::memory_order_relaxed);
    // No heavy fence, which would disturb the program: a command that slips through waits as long
    // as the rest.
    if (queue_.empty() || !has_own_cpu())
        futex_wait(parked_, dozing, length_us);
    else
        Ladder::give_way();  // to whom keeps us from issuing it
    return parked_.exchange(awake, std::memory_order_relaxed) == awake;
}

}  // namespace vecmpi::offload
