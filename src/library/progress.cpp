// SPDX-License-Identifier: BSD-3-Clause
// Interposes ucp_worker_progress, which MPICH's ch4:ucx calls in every wait of its own and which
// never gives the CPU away: Init, communicator creation, RMA synchronisation, blocking collectives.
// Must not be used to make progress.
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/api/needs.hpp"
#include "wakeup.hpp"

// UCX's prototype: unsigned ucp_worker_progress(ucp_worker_h), the handle being a pointer.
extern "C" __attribute__((visibility("default"))) unsigned ucp_worker_progress(
    void* worker) noexcept;

namespace vecmpi::library {

thread_local constinit uint64_t library_events = 0;
thread_local constinit int blocking_calls = 0;
constinit std::atomic<uint32_t> jobs_under_way{0}, jobs_on_memory{0};

namespace {

constexpr PollAnswers no_engine{[]() noexcept { return JobLook::none; }, []() noexcept {},
                                []() noexcept { return false; }};
constinit std::atomic<const PollAnswers*> answers_to_polls{&no_engine};  // stored with release

const PollAnswers& answers() noexcept { return *answers_to_polls.load(std::memory_order_acquire); }

using ProgressFunction = unsigned (*)(void* worker);

// Whom a caller would reach without us. A process may hold two copies of UCX, and a worker of one
// must not come to the other.
struct Route {
    std::atomic<uintptr_t> begin{0};  // the caller's object in memory; stored last, with release
    std::atomic<uintptr_t> end{0};
    std::atomic<ProgressFunction> function{nullptr};
};
constexpr size_t most_routes = 8;
constinit Route routes[most_routes];
constinit std::mutex making_route;

// Messages that do not come by UCX (MPICH 5 has shared memory of its own) reset no ladder: rests
// are such that it makes no difference (Ladder::rest_if_wanted).
constinit std::atomic<bool> resting{false};
constinit std::atomic<bool> seen{false};
WaitPolicy library_policy;
thread_local constinit Ladder library_ladder
    __attribute__((tls_model("initial-exec"))){library_policy};

// At MPI_THREAD_MULTIPLE the library polls with its lock held, and gives it up for a moment after
// each poll in vain. A thread that rests in the poll keeps the others out, and hands the CPU to one
// that finds the lock taken: threads then starve for seconds. So a rest is due from the poll on,
// and is taken once the lock is free.
//
// A look at the jobs calls the library, which takes its global lock, so it is made when that one
// was given up. An inner lock may be given up before, and ROMIO holds one of its own all the while.
enum Due : unsigned { nothing = 0, rest = 1, jobs = 2, sleep = 4 };
struct AtUnlock {
    unsigned due = nothing;
    int locks_held = 0;   // of the library's, by this thread
    bool polled = false;  // since a lock was last given up, while all are watched
};
thread_local constinit AtUnlock at_unlock __attribute__((tls_model("initial-exec")));

// The library's global lock: the outermost one that a test of a request gives up after a poll.
constinit std::atomic<pthread_mutex_t*> global_lock{nullptr};
// Where the MPI library lies in memory.
constinit std::atomic<uintptr_t> library_begin{0}, library_bytes{0};

// What keeps nobody asleep must not keep the CPU.
void rest_if_refused_often() noexcept {
    if (++arming.refusals % most_refusals == 0) library_ladder.rest_if_wanted();
}

void do_what_is_due(const pthread_mutex_t* given_up) noexcept {
    if ((at_unlock.due & jobs) != 0 && given_up == global_lock.load(std::memory_order_relaxed)) {
        at_unlock.due &= ~unsigned{jobs};
        answers().advance_jobs();
        forget_armed();  // they may have sent something since
    }
    if ((at_unlock.due & sleep) != 0 && given_up == global_lock.load(std::memory_order_relaxed)) {
        at_unlock.due &= ~unsigned{sleep};
        if (blocking_calls != 0 && !sleep_if_armed(longest_sleep_us)) rest_if_refused_often();
    }
    if ((at_unlock.due & rest) == 0) return;
    at_unlock.due &= ~unsigned{rest};
    library_ladder.rest_if_wanted();
}

// Locks from before these functions came into their places are not counted; in MPI_Init, when there
// are no jobs.
int lock_and_count(pthread_mutex_t* mutex) noexcept {
    const int rc = pthread_mutex_lock(mutex);
    at_unlock.locks_held += rc == 0;
    return rc;
}

int try_lock_and_count(pthread_mutex_t* mutex) noexcept {
    const int rc = pthread_mutex_trylock(mutex);
    at_unlock.locks_held += rc == 0;
    return rc;
}

int unlock_and_rest(pthread_mutex_t* mutex) noexcept {
    const int rc = pthread_mutex_unlock(mutex);
    if (at_unlock.locks_held > 0) {
        --at_unlock.locks_held;
        if (at_unlock.locks_held == 0 && std::exchange(at_unlock.polled, false) &&
            global_lock.load(std::memory_order_relaxed) == nullptr) [[unlikely]]
            global_lock.store(mutex, std::memory_order_relaxed);
    }
    if (at_unlock.due != nothing) do_what_is_due(mutex);
    return rc;
}

// The object that has the MPI functions, among those that poll.
void note_library(const CallersChoice& polling) noexcept {
    const auto inside = reinterpret_cast<uintptr_t>(real.Test);
    if (inside - polling.begin >= polling.end - polling.begin) return;
    library_bytes.store(polling.end - polling.begin, std::memory_order_relaxed);
    library_begin.store(polling.begin, std::memory_order_release);
}

}  // namespace

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

// The MPI library's polls, while it rests: its import is bound to a function that need not look who
// calls, and whom it would reach.
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

// ---- whose locks come through us --------------------------------------------------------------
// In MPI_Init all of them, to find the global one. Later none, until something is first due at an
// unlock: they cost a program at MPI_THREAD_MULTIPLE some ns a call.

enum class Watched : uint8_t { none, unlocks, all };

// The MPI library's. A thread that loads something may hold the loader's lock and wait for the
// library's, so who polls must not ask the loader: the entries are found in MPI_Init.
class WatchedLocks {
  public:
    void find() noexcept {
        const auto* const inside = reinterpret_cast<const void*>(real.Test);
        const std::lock_guard<std::mutex> lock(mutex_);
        if (lock_ || unlock_) return;
        lock_ = Import(inside, "pthread_mutex_lock");
        try_lock_ = Import(inside, "pthread_mutex_trylock");
        unlock_ = Import(inside, "pthread_mutex_unlock");
    }
    void watch(Watched what) noexcept {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (watched_ == what) return;
        watched_ = what;
        const bool unlocks =
            exchange(unlock_, unlock_and_rest, pthread_mutex_unlock, what != Watched::none);
        const bool all = what == Watched::all;
        exchange(lock_, lock_and_count, pthread_mutex_lock, all);
        exchange(try_lock_, try_lock_and_count, pthread_mutex_trylock, all);
        unlocks_.store(unlocks, std::memory_order_relaxed);
        all_.store(all, std::memory_order_relaxed);
    }
    bool unlocks() const noexcept { return unlocks_.load(std::memory_order_relaxed); }
    bool all() const noexcept { return all_.load(std::memory_order_relaxed); }

  private:
    // True where ours is in place.
    template <class Function>
    static bool exchange(const Import& import, Function ours, Function own, bool wanted) noexcept {
        return import.replace(reinterpret_cast<const void*>(wanted ? ours : own)) && wanted;
    }
    std::mutex mutex_;
    Watched watched_ = Watched::none;
    Import lock_, try_lock_, unlock_;
    std::atomic<bool> unlocks_{false}, all_{false};
};
constinit WatchedLocks locks_of_library;

void become_due(unsigned what) noexcept {
    if (!locks_of_library.unlocks()) [[unlikely]]
        locks_of_library.watch(Watched::unlocks);
    at_unlock.due |= what;
}

// Whoever calls was linked to UCX, so there is a definition. Not kept where the table is full.
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

// Threads may be in the library, which polls with its lock held.
bool locks() noexcept { return global_lock.load(std::memory_order_relaxed) != nullptr; }

// A wait that may sleep, and is to. Armed by one poll, it sleeps after the next one of the same
// worker: all that this wait polls are armed then. Where the library polls with its lock held, once
// that is given up.
enum class Bedtime : uint8_t { no, soon, at_unlock };
Bedtime go_to_sleep(void* worker, uintptr_t caller) noexcept {
    if (!library_wakes() || !library_ladder.wants_sleep() || !is_mpi_library(caller))
        return Bedtime::no;
    set_need(Need::sleepers, true);
    if (blocking_calls == 0) return Bedtime::no;  // a test, or a wait from before
    if (jobs_on_memory.load(std::memory_order_relaxed) != 0) return Bedtime::no;
    // UCX refuses while it has something to look at: mostly the next poll finds it.
    if (!arm(worker)) return ++arming.refusals % most_refusals != 0 ? Bedtime::soon : Bedtime::no;
    if (!arming.complete) return Bedtime::soon;
    if (locks()) return Bedtime::at_unlock;
    if (!sleep_if_armed(longest_sleep_us)) rest_if_refused_often();
    return Bedtime::soon;
}

[[gnu::noinline]] void rest_after_poll_in_vain(void* worker, uintptr_t caller) noexcept {
    if (arming.wanted && is_mpi_library(caller)) arm(worker);
    if (library_ladder.spins() || answers().loop_rests())
        return;  // the engine's loop knows better when
    const Bedtime bedtime = go_to_sleep(worker, caller);
    if (bedtime == Bedtime::soon) return;
    if (bedtime == Bedtime::at_unlock) return become_due(sleep);
    if (is_announced) forget_armed();
    // No unlock came after the last poll: the library holds no lock, or does not give it up here.
    if ((at_unlock.due & rest) != 0) library_ladder.rest_if_wanted();
    become_due(rest);
}

unsigned rest_after(unsigned events, void* worker, uintptr_t caller) noexcept {
    library_events += events;
    if (events != 0) {
        library_ladder.reset();
        note_moved();
    } else {
        rest_after_poll_in_vain(worker, caller);
    }
    return events;
}

// Never from a poll within a poll, by a function that UCX calls back.
unsigned poll_beside_jobs(ProgressFunction function, void* worker, uintptr_t caller) noexcept {
    static thread_local constinit int polls __attribute__((tls_model("initial-exec"))) = 0;
    ++polls;
    const unsigned events = function(worker);
    --polls;
    const JobLook look = polls == 0 && is_mpi_library(caller) ? answers().look() : JobLook::none;
    if (look == JobLook::at_once) answers().advance_jobs();
    if (look == JobLook::after_unlock) become_due(jobs);
    return rest_after(events, worker, caller);
}

unsigned poll_by_route(void* worker, uintptr_t caller) noexcept {
    ProgressFunction function = known_function(caller);
    if (function == nullptr) function = find_function(caller);
    if (function == nullptr) return 0;
    if (!resting.load(std::memory_order_acquire)) return function(worker);
    if (!seen.load(std::memory_order_relaxed)) seen.store(true, std::memory_order_relaxed);
    const bool all_watched = locks_of_library.all();
    at_unlock.polled |= all_watched;
    if (is_mpi_library(caller) && !all_watched) usual_polls.bind(function);
    if (jobs_under_way.load(std::memory_order_relaxed) != 0)
        return poll_beside_jobs(function, worker, caller);
    return rest_after(function(worker), worker, caller);
}

// The MPI library's, rests, and mostly has no jobs beside it: a few instructions, since a message
// of 8 bytes comes in as little as two polls, and a poll takes as little as 10 ns.
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
        locks_of_library.find();
        usual_polls.find();
        usual_polls.unbind();  // each poll is to be noted
    }
    locks_of_library.watch(on ? Watched::all : Watched::none);
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
    const bool shown = library_bytes.load(std::memory_order_relaxed) != 0 &&
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
