// SPDX-License-Identifier: BSD-3-Clause
// The engine: one queue, one window of active requests, one loop, one owner at a time. Other files
// of src/offload enter it as the owner (try_own, own, wait_until) or by the queue (push). Nothing
// outside src/offload sees it. Its states: docs/design.md, "The engine's states".
#pragma once

#include "command_queue.hpp"
#include "jobs.hpp"
#include "offload/api/thread_state.hpp"
#include "offload_thread.hpp"
#include "request_window.hpp"
#include "sleeping_wait.hpp"

namespace vecmpi::offload {

// What MPI_Init found out. Nothing changes while the engine runs.
struct EngineFacts {
    WaitPolicy wait;                         // of blocked program threads
    uint32_t callers_with_cpu = UINT32_MAX;  // more blocked threads than these yield soon
    bool yields_at_once = false;             // oversubscribed: failing Tests give the CPU away
    // Operations may be queued: for a thread of its own, or, at MPI_THREAD_MULTIPLE, because
    // blocked threads must wait on our ladder, one of them as the owner.
    bool queues = false;
    bool many_callers = false;        // threads of the program may wait at once, or one and ours
    bool library_may_wait = false;    // its own waits follow our ladder, or may spin
    bool callers_serve_jobs = false;  // in waits of the library too, by its polls
    bool library_locks = false;       // it is at MPI_THREAD_MULTIPLE: it polls with its lock held
    // The library holds its lock while it runs an operator of the program: MPICH 5 and Intel MPI
    // do, MPICH 4 does not. Such an operator must not run on the offload thread, where it may wait
    // for a lock that a thread of the program holds, who waits for the library's.
    bool operators_lock_library = false;
    int tag_upper_bound = 32767;

    // The library waits as well as our loop would, and nobody else needs the engine meanwhile.
    bool library_waits_as_well() const noexcept {
        return library_may_wait && !queues && wait.max_sleep_us == 0;
    }
};

// Who completes requests. From owner to callers by let_callers_complete(); back when the engine
// starts again.
enum class Completer : uint32_t {
    owner,
    // The owner may be in a function of the program that waits for another thread (an operator, or
    // the query function of a generalized request), or a communicator in the window has another
    // error handler than MPI_COMM_WORLD. Then nobody is waited for: each thread asks the library
    // about its own requests, those in the window too, and the owner issues and makes progress, but
    // completes nothing.
    callers
};

// Kinds of requests that complete in ways of their own, once the program has made some.
enum class RequestKind : uint8_t {
    persistent = 1 << 0,         // Testall may refuse them
    generalized = 1 << 1,        // note_generalized_requests()
    virtual_persistent = 1 << 2  // adopt_persistent() gave the program some
};

class Engine {
  public:
    EngineFacts facts;
    alignas(64) SlotPool pool;
    JobList jobs;
    OffloadThread thread{*this};

    // --- ownership: acquire pairs with release; what the owner wrote is seen by the next one.
    bool try_own() noexcept {
        return owned_.load(std::memory_order_relaxed) == 0 &&
               owned_.exchange(1, std::memory_order_acquire) == 0;
    }
    // Waits on the ladder. False, and not the owner, where callers complete.
    bool own() noexcept;
    // Gives the engine back. Without a thread, what others queued while we held it would wait for
    // somebody's next call: the exchange, a full fence, pairs with the queue's push before a failed
    // try_own (5 ns less than store and fence).
    void leave() noexcept {
        if (!facts.queues || thread.exists()) return release();
        owned_.exchange(0, std::memory_order_seq_cst);
        if (!queue_.empty()) [[unlikely]]
            issue_left_over();
    }
    void release() noexcept { owned_.store(0, std::memory_order_release); }
    // True where no other thread came by since this one last did, nobody holds the engine, and
    // nothing is queued: this thread then needs no ownership to call the library, which has a lock
    // of its own at this level (14 ns a call less). A thread that comes now holds the engine beside
    // it, which costs time at the library's lock, not order. Only without an offload thread, which
    // would be in the way.
    bool alone() noexcept {
        if (thread.exists()) return false;
        if (last_caller_.load(std::memory_order_relaxed) != &this_thread) {
            last_caller_.store(&this_thread, std::memory_order_relaxed);
            return false;
        }
        return owned_.load(std::memory_order_relaxed) == 0 && all_issued();  // order is kept
    }

    // --- who completes requests
    bool callers_complete() const noexcept {
        return completer_.load(std::memory_order_acquire) == Completer::callers;
    }
    // Waits for the owner, who comes back as long as the callers do not complete. As the owner: no
    // Testsome over the window runs then, and none comes after. Nothing in a callback, which may be
    // inside one.
    void let_callers_complete() noexcept;
    // Before other threads come: callers complete from the beginning.
    void begin_with_callers() noexcept;
    void note(RequestKind kind) noexcept {
        if (!has_seen(kind)) kinds_.fetch_or(static_cast<uint8_t>(kind), std::memory_order_relaxed);
    }
    bool has_seen(RequestKind kind) const noexcept {
        return (kinds_.load(std::memory_order_relaxed) & static_cast<uint8_t>(kind)) != 0;
    }
    void forget_kind(RequestKind kind) noexcept {
        kinds_.fetch_and(static_cast<uint8_t>(~static_cast<uint8_t>(kind)),
                         std::memory_order_relaxed);
    }

    // --- the queue
    void push(Slot* slot) noexcept;
    // Nothing waits, and nobody is issuing what he took from the queue. The fence: who sees that
    // the queue was emptied sees the right to issue taken or given back.
    bool nothing_queued() const noexcept {
        if (!queue_.empty()) return false;
        std::atomic_thread_fence(std::memory_order_acquire);
        return issuing_.load(std::memory_order_acquire) == 0 || this_thread.is(Inside::issuing);
    }
    bool queue_is_empty() const noexcept { return queue_.empty(); }
    uint64_t posted() const noexcept { return posted_.load(std::memory_order_relaxed); }
    // Has the library seen everything that was posted before? Acquire: pairs with drain_queue().
    bool all_issued() const noexcept {
        const uint64_t before = posted();
        return issued_.load(std::memory_order_acquire) >= before;
    }
    // Returns when that is so. Does not wait for the owner, who may be inside a function of the
    // program that waits for a lock which this thread holds: issues the rest beside it.
    void wait_until_issued() noexcept;
    void expect_many_producers(bool many) noexcept { queue_.expect_many_producers(many); }

    // --- owner only
    bool drain() noexcept {  // issues all that is queued; true if there was something
        return !nothing_queued() && drain_queue();
    }
    bool step() noexcept;  // drain, one look at the window and at the jobs; true if something moved
    void forget(Slot* slot) noexcept;  // takes an active slot out of the window
    // Is it in the library's Testsome, and this a callback from there?
    bool is_polling() const noexcept { return owner_at_ == OwnerAt::testsome; }
    void reset() noexcept;  // nothing of an earlier life stays

    // --- one look, of any thread: at all that is under way, and for the completion of this slot.
    // True if something moved.
    bool look(Slot* slot = nullptr) noexcept;
    // Without progress, so that a function that the library's progress calls may ask.
    bool is_complete(const Slot* slot) noexcept;
    void ask(Slot* slot) noexcept;  // where callers complete, from beside_owner()
    // Where callers complete: attempt(true) beside the owner, after all that is queued, if no other
    // thread is issuing.
    template <class Attempt>
    bool beside_owner(Attempt attempt) noexcept;
    // For a Test. First without the engine; then as its owner, since only the library knows real
    // requests, or beside him.
    template <class Attempt>
    bool progress_once(Attempt attempt) noexcept;
    bool has_work() const noexcept {
        return !window_.empty() || !queue_.empty() ||
               library::jobs_under_way.load(std::memory_order_relaxed) != 0;
    }

    // --- waiting, of any thread of the program
    // attempt(may_call) -> finished. Called again and again; it may call the library as the owner,
    // where this thread can be it, and where callers complete.
    template <class Attempt>
    void wait_until(Attempt attempt, WaitsFor waits_for = WaitsFor::messages) noexcept;
    // finished() runs functions of the program, which may wait for other threads: this thread never
    // owns the engine meanwhile.
    template <class Finished>
    void wait_beside_owner(Finished finished) noexcept;
    // After a look in vain. More blocked threads than CPUs: the one that can go on has to be let in
    // soon.
    void rest(Ladder& ladder) const noexcept {
        if (callers_.load(std::memory_order_relaxed) > facts.callers_with_cpu)
            ladder.rest_in_crowd();
        else
            ladder.rest();
    }
    // The same of a wait that may sleep until what it waits for comes.
    void rest_or_sleep(Ladder& ladder, SleepingWait& sleeper, WaitsFor waits_for) const noexcept;
    // After a failing look of a Test: on an oversubscribed node whoever must send has no CPU
    // meanwhile.
    void give_way_if_crowded() const noexcept {
        if (facts.yields_at_once) Ladder::give_way();
    }
    bool somebody_waits() const noexcept { return callers_.load(std::memory_order_relaxed) != 0; }

  private:
    friend class WaitingCaller;
    enum class OwnerAt : uint8_t { loop, testsome };

    // The right to take from the queue and to change the window. The owner's, but while it is in
    // the library's Testsome another thread may issue, which only adds to the window's end. Nests.
    class IssueScope {
      public:
        explicit IssueScope(Engine& engine) noexcept;
        ~IssueScope();
        IssueScope(const IssueScope&) = delete;
        IssueScope& operator=(const IssueScope&) = delete;

      private:
        Engine& engine_;
        const bool nested_;
        const Within within_{Inside::issuing};
    };

    bool waits_for_node(WaitsFor waits_for) const noexcept;
    bool can_be_woken(WaitsFor waits_for) const noexcept;
    bool progress_only() noexcept;
    bool drain_queue() noexcept;
    void issue_beside_owner() noexcept;
    bool try_issue() noexcept {
        return issuing_.load(std::memory_order_relaxed) == 0 &&
               issuing_.exchange(1, std::memory_order_acquire) == 0;  // pairs with ~IssueScope()
    }
    void issue_left_over() noexcept;
    bool test_one_by_one(const RequestWindow::Part& part) noexcept;
    void finish(Slot* slot, const MPI_Status& status, int error) noexcept;
    void issue(Slot* slot) noexcept;
    bool poll() noexcept;
    void complete(Slot* slot, int error) noexcept;

    alignas(64) std::atomic<uint32_t> owned_{0};
    std::atomic<const ThreadState*> last_caller_{nullptr};
    alignas(64) std::atomic<Completer> completer_{Completer::owner};
    std::atomic<uint8_t> kinds_{0};  // a bit for each RequestKind
    // Operations queued so far, counted before the push. Written by the posting threads only, so
    // that below MPI_THREAD_MULTIPLE, where they take turns, a post finds the line in its own
    // cache.
    alignas(64) std::atomic<uint64_t> posted_{0};
    // Operations taken from the queue and given to the library; written after the issue, with the
    // right to issue.
    alignas(64) std::atomic<uint64_t> issued_{0};
    std::atomic<uint32_t> issuing_{0};
    // Program threads in a blocking call; the offload thread leaves the engine to them.
    alignas(64) std::atomic<uint32_t> callers_{0};
    OwnerAt owner_at_ = OwnerAt::loop;  // a callback of the library's enters us from the Testsome
    alignas(64) RequestWindow window_;
    CommandQueue queue_;
};

// The library looks once at all that is under way.
void poll_library() noexcept;

extern Engine* engine;  // made by start_engine(), kept to the end of the process

// One look at each job that no other thread looks at. True if one is done. Inside the library, as
// the engine's owner or beside him.
inline bool advance_jobs() noexcept {
    return library::jobs_under_way.load(std::memory_order_relaxed) != 0 && engine->jobs.advance();
}

// A program thread that waits: the offload thread leaves the engine to it.
class WaitingCaller {
  public:
    explicit WaitingCaller(Engine& engine) noexcept
        // A caller that sleeps between looks would make all progress as slow as its sleeps.
        : engine_(engine),
          counted_(engine.facts.many_callers && engine.facts.wait.max_sleep_us == 0) {
        if (counted_) engine_.callers_.fetch_add(1, std::memory_order_relaxed);
    }
    ~WaitingCaller() {
        if (counted_) engine_.callers_.fetch_sub(1, std::memory_order_relaxed);
    }
    WaitingCaller(const WaitingCaller&) = delete;
    WaitingCaller& operator=(const WaitingCaller&) = delete;

  private:
    Engine& engine_;
    const bool counted_;
};

template <class Attempt>
bool Engine::beside_owner(Attempt attempt) noexcept {
    if (!queue_.empty() && try_issue()) issue_beside_owner();
    const Within library(Inside::library);
    advance_jobs();
    return attempt(true);
}

template <class Attempt>
bool Engine::progress_once(Attempt attempt) noexcept {
    if (this_thread.is(Inside::engine)) return attempt(true);
    if (attempt(false)) return true;
    bool finished;
    if (own()) {
        {
            const Within owner(as_owner);
            if (has_work()) step();
            finished = attempt(true);
        }
        leave();
    } else {
        finished = beside_owner(attempt);
    }
    if (!finished) give_way_if_crowded();
    return finished;
}

template <class Attempt>
void Engine::wait_until(Attempt attempt, WaitsFor waits_for) noexcept {
    // From a callback: we hold the engine already. A callback of Testsome cannot wait for a request
    // that this very Testsome looks at; no MPI function that calls back allows that.
    if (this_thread.is(Inside::engine)) {
        for (Ladder ladder(facts.wait); !attempt(true);)
            if (step())
                ladder.reset();
            else
                rest(ladder);
        return;
    }
    if (facts.queues && alone() && !has_work()) {
        const Within library(Inside::library);
        if (attempt(true)) return;
    }
    const WaitingCaller caller(*this);
    SleepingWait sleeper;
    Ladder ladder(facts.wait);
    for (;;) {
        bool moved = false;
        bool finished;
        if (callers_complete()) {
            finished = beside_owner(attempt);
        } else if (try_own()) {
            {
                const Within owner(as_owner);
                moved = has_work() && step();
                finished = attempt(true);
            }
            leave();
        } else {
            finished = attempt(false);
        }
        if (finished) return;
        if (moved)
            ladder.reset();
        else
            rest_or_sleep(ladder, sleeper, waits_for);
    }
}

template <class Finished>
void Engine::wait_beside_owner(Finished finished) noexcept {
    const WaitingCaller caller(*this);
    for (Ladder ladder(facts.wait); !finished();)
        if (look())
            ladder.reset();
        else
            rest(ladder);
}

}  // namespace vecmpi::offload
