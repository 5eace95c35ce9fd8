// SPDX-License-Identifier: BSD-3-Clause
// Interposes ucp_worker_progress, which MPICH's ch4:ucx calls in all waits of its own: Init,
// communicator creation, RMA synchronisation, blocking collectives. It never gives the CPU away
// there; this does. Must not be used to make progress.
#include <atomic>
#include <mutex>

#include "base/api/needs.hpp"
#include "library_locks.hpp"
#include "wakeup.hpp"

// UCX's prototype: unsigned ucp_worker_progress(ucp_worker_h), the handle being a pointer.
extern "C" __attribute__((visibility("default"))) unsigned ucp_worker_progress(
    void* worker) noexcept;

namespace vecmpi::library {

thread_local constinit uint64_t library_events = 0;
thread_local constinit int blocking_calls = 0;
thread_local constinit int looking_calls = 0;
constinit std::atomic<uint32_t> jobs_under_way{0}, jobs_on_memory{0};

namespace {

constexpr PollAnswers no_engine{[]() noexcept { return JobLook::none; }, []() noexcept {},
                                []() noexcept { return false; }};
constinit std::atomic<const PollAnswers*> answers_to_polls{&no_engine};  // stored with release

const PollAnswers& answers() noexcept { return *answers_to_polls.load(std::memory_order_acquire); }

using ProgressFunction = unsigned (*)(void* worker);

// What a caller would reach without us. A process may hold two copies of UCX, and a worker of one
// must not come to the other.
struct Route {
    std::atomic<uintptr_t> begin{0};  // the caller's object in memory; stored last, with release
    std::atomic<uintptr_t> end{0};
    std::atomic<ProgressFunction> function{nullptr};
};
constexpr size_t most_routes = 8;
constinit Route routes[most_routes];
constinit std::mutex making_route;

// Messages that do not come by UCX (MPICH 5 has shared memory of its own) reset no ladder. Rests
// are made so that this does not matter (Ladder::rest_if_wanted).
constinit std::atomic<bool> resting{false};
constinit std::atomic<bool> seen{false};
WaitPolicy library_policy;
thread_local constinit Ladder library_ladder
    __attribute__((tls_model("initial-exec"))){library_policy};

thread_local constinit FailingLooks failing_looks __attribute__((tls_model("initial-exec")));

// Where the MPI library lies in memory.
constinit std::atomic<uintptr_t> library_begin{0}, library_bytes{0};

// A thread that cannot sleep must still give the CPU away.
void rest_if_refused_often() noexcept {
    if (++arming.refusals % most_refusals == 0) library_ladder.rest_if_wanted();
}

// Notes where the object lies that has the MPI functions, if this is the one that polls.
void note_library(const CallersChoice& polling) noexcept {
    if (!polling.is_of(reinterpret_cast<uintptr_t>(real.Test))) return;
    library_bytes.store(polling.end - polling.begin, std::memory_order_relaxed);
    library_begin.store(polling.begin, std::memory_order_release);
}

}  // namespace

void do_what_is_due(const pthread_mutex_t* given_up) noexcept {
    const auto take = [](AtUnlock::Due what) noexcept {
        const bool is_due = (at_unlock.due & what) != 0;
        at_unlock.due &= ~unsigned{what};
        return is_due;
    };
    const bool global = given_up == global_lock.load(std::memory_order_relaxed);
    if (global && take(AtUnlock::jobs)) {
        answers().advance_jobs();
        forget_armed();  // they may have sent something since
    }
    if (global && take(AtUnlock::sleep) && blocking_calls != 0 && !sleep_if_armed(longest_sleep_us))
        rest_if_refused_often();
    if (take(AtUnlock::rest)) library_ladder.rest_if_wanted();
}

bool library_shows_its_calls() noexcept {
    return library_bytes.load(std::memory_order_relaxed) != 0;
}

bool is_mpi_library(uintptr_t address) noexcept {
    return address - library_begin.load(std::memory_order_acquire) <
           library_bytes.load(std::memory_order_relaxed);
}

namespace {

ProgressFunction known_function(uintptr_t caller) noexcept {
    for (const Route& route : routes) {
        const uintptr_t begin = route.begin.load(std::memory_order_acquire);
        if (begin == 0) return nullptr;
        if (caller - begin < route.end.load(std::memory_order_relaxed) - begin)
            return route.function.load(std::memory_order_relaxed);
    }
    return nullptr;
}

unsigned usual_poll(void* worker) noexcept;

// While the MPI library rests, its import is bound to a function that need not ask who calls, and
// what the caller would reach.
class UsualPolls {
  public:
    void find() noexcept {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!import_)
            import_ = Import(reinterpret_cast<const void*>(real.Test), "ucp_worker_progress");
    }
    ProgressFunction function() const noexcept { return function_.load(std::memory_order_relaxed); }
    void bind(ProgressFunction polled) noexcept {
        if (is_bound_.load(std::memory_order_relaxed)) return;
        const std::lock_guard<std::mutex> lock(mutex_);
        if (is_bound_.exchange(true, std::memory_order_relaxed)) return;
        function_.store(polled, std::memory_order_release);
        import_.replace(reinterpret_cast<const void*>(usual_poll));
    }
    void unbind() noexcept {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (is_bound_.exchange(false, std::memory_order_relaxed))
            import_.replace(reinterpret_cast<const void*>(::ucp_worker_progress));
    }

  private:
    std::mutex mutex_;
    std::atomic<bool> is_bound_{false};
    Import import_;  // found in MPI_Init: who polls must not ask the loader
    alignas(64) std::atomic<ProgressFunction> function_{nullptr};
};
constinit UsualPolls usual_polls;

// A caller was linked to UCX, so there is a definition. It is not kept where the table is full.
ProgressFunction find_function(uintptr_t caller) noexcept {
    const CallersChoice found = definition_for(caller, "ucp_worker_progress");
    const auto function = reinterpret_cast<ProgressFunction>(found.address);
    if (function == nullptr || found.begin == 0) return function;
    const std::lock_guard<std::mutex> lock(making_route);
    if (ProgressFunction already = known_function(caller)) return already;
    for (Route& route : routes) {
        if (route.begin.load(std::memory_order_relaxed) != 0) continue;
        route.end.store(found.end, std::memory_order_relaxed);
        route.function.store(function, std::memory_order_relaxed);
        note_library(found);
        route.begin.store(found.begin, std::memory_order_release);
        break;
    }
    return function;
}

// Does a wait sleep now? A worker is armed by one poll. The thread sleeps after the next poll of
// the same worker: then all that this wait polls are armed. Where the library polls with its lock
// held, it sleeps once that is given up.
enum class Bedtime : uint8_t { no, soon, at_unlock };
Bedtime go_to_sleep(void* worker, uintptr_t caller) noexcept {
    if (!library_wakes() || !library_ladder.wants_sleep() || !is_mpi_library(caller) ||
        !sleep_pays())
        return Bedtime::no;
    set_need(Need::sleepers, true);
    if (blocking_calls == 0) return Bedtime::no;  // a test, or a wait from before
    if (jobs_on_memory.load(std::memory_order_relaxed) != 0) return Bedtime::no;
    // UCX refuses while it has something to look at. Mostly the next poll finds it.
    if (!arm(worker)) return ++arming.refusals % most_refusals != 0 ? Bedtime::soon : Bedtime::no;
    if (!arming.complete) return Bedtime::soon;
    if (global_lock.load(std::memory_order_relaxed) != nullptr) return Bedtime::at_unlock;
    if (!sleep_if_armed(longest_sleep_us)) rest_if_refused_often();
    return Bedtime::soon;
}

[[gnu::noinline]] void rest_after_poll_in_vain(void* worker, uintptr_t caller) noexcept {
    if (arming.wanted && is_mpi_library(caller)) arm(worker);
    if (library_ladder.spins() || answers().loop_rests())
        return;  // the engine's loop knows better when
    if (looking_calls != 0 && !failing_looks.one_more()) return;
    const Bedtime bedtime = go_to_sleep(worker, caller);
    if (bedtime == Bedtime::soon) return;
    if (bedtime == Bedtime::at_unlock) return become_due(AtUnlock::sleep);
    if (is_announced) forget_armed();
    // No unlock came after the last poll: the library holds no lock, or keeps it here.
    if ((at_unlock.due & AtUnlock::rest) != 0) library_ladder.rest_if_wanted();
    become_due(AtUnlock::rest);
}

unsigned rest_after(unsigned events, void* worker, uintptr_t caller) noexcept {
    library_events += events;
    if (events != 0) {
        library_ladder.reset();
        failing_looks.end();
        note_moved();
    } else {
        rest_after_poll_in_vain(worker, caller);
    }
    return events;
}

// Jobs are not looked at in a poll within a poll, made by a function that UCX calls back.
unsigned poll_beside_jobs(ProgressFunction function, void* worker, uintptr_t caller) noexcept {
    static thread_local constinit int polls __attribute__((tls_model("initial-exec"))) = 0;
    ++polls;
    const unsigned events = function(worker);
    --polls;
    const JobLook look = polls == 0 && is_mpi_library(caller) ? answers().look() : JobLook::none;
    if (look == JobLook::at_once) answers().advance_jobs();
    if (look == JobLook::after_unlock) become_due(AtUnlock::jobs);
    return rest_after(events, worker, caller);
}

unsigned poll_by_route(void* worker, uintptr_t caller) noexcept {
    ProgressFunction function = known_function(caller);
    if (function == nullptr) function = find_function(caller);
    if (function == nullptr) return 0;
    if (!resting.load(std::memory_order_acquire)) return function(worker);
    if (!seen.load(std::memory_order_relaxed)) seen.store(true, std::memory_order_relaxed);
    const bool all_watched = all_locks_come_here.load(std::memory_order_relaxed);
    at_unlock.polled |= all_watched;
    if (is_mpi_library(caller) && !all_watched) usual_polls.bind(function);
    if (jobs_under_way.load(std::memory_order_relaxed) != 0)
        return poll_beside_jobs(function, worker, caller);
    return rest_after(function(worker), worker, caller);
}

// The MPI library's poll while it rests, mostly without jobs. It has a few instructions only: a
// message of 8 bytes comes in as little as two polls, and a poll takes as little as 10 ns.
unsigned usual_poll(void* worker) noexcept {
    const ProgressFunction function = usual_polls.function();
    const auto caller = [] { return library_begin.load(std::memory_order_relaxed); };
    if (jobs_under_way.load(std::memory_order_relaxed) != 0) [[unlikely]]
        return poll_beside_jobs(function, worker, caller());
    const unsigned events = function(worker);
    if (events == 0 && library_ladder.spins()) [[likely]]
        return 0;
    return rest_after(events, worker, caller());
}

}  // namespace

void rest_in_library(const WaitPolicy& policy) noexcept {
    if (!may_have(Trait::polls)) return;
    library_policy = policy;
    resting.store(true, std::memory_order_release);
}

void watch_locks_of_library(bool on) noexcept {
    if (on) {
        find_library_locks();
        usual_polls.find();
        usual_polls.unbind();  // each poll is to be noted
    }
    watch_library_locks(on ? Watched::all : Watched::none);
}

void answer_polls(const PollAnswers& given) noexcept {
    answers_to_polls.store(&given, std::memory_order_release);
}

// The usual poll looks no further while it spins.
void arm_next_polls() noexcept {
    arming.wanted = true;
    library_ladder.end_spins();
}

bool library_polls_seen() noexcept {
    return note_trait(Trait::polls, seen.load(std::memory_order_relaxed));
}

bool library_shows_polls(bool locks) noexcept {
    const bool shown = library_shows_its_calls() &&
                       (!locks || global_lock.load(std::memory_order_relaxed) != nullptr);
    return note_trait(Trait::poll_locks, shown && may_have(Trait::polls));
}

void forget_global_lock() noexcept { global_lock.store(nullptr, std::memory_order_relaxed); }

void stop_resting_in_library() noexcept {
    resting.store(false, std::memory_order_relaxed);
    usual_polls.unbind();
}

}  // namespace vecmpi::library

unsigned ucp_worker_progress(void* worker) noexcept {
    return vecmpi::library::poll_by_route(worker,
                                          reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}
