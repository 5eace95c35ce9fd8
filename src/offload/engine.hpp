// SPDX-License-Identifier: BSD-3-Clause
// The engine: one queue, one window of active requests, one loop, one owner at a time. Other files
// of src/offload enter it as the owner (as_owner, wait_until) or by the queue (push). Nothing
// outside src/offload sees it. Its states: docs/design.md, "The engine's states".
#pragma once

#include "command_queue.hpp"
#include "engine_facts.hpp"
#include "job_list.hpp"
#include "offload/api/thread_state.hpp"
#include "offload_thread.hpp"
#include "request_window.hpp"
#include "sleeping_wait.hpp"

namespace vecmpi::offload {

// Who completes requests. From owner to callers by let_callers_complete(); back when the engine
// starts again.
enum class Completer : uint32_t {
    owner,
    // Each thread tests its own requests, those in the window too. The owner issues and makes
    // progress, and nobody waits for it. It may be in a function of the program that waits for
    // another thread: an operator, or the query function of a generalized request. Or a
    // communicator in the window has another error handler than MPI_COMM_WORLD.
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
    std::atomic<bool> handlers_may_differ{false};  // some communicator's from MPI_COMM_WORLD's

    // --- ownership: acquire pairs with release; what the owner wrote is seen by the next one.
    bool try_own() noexcept {
        return owned_.load(std::memory_order_relaxed) == 0 &&
               owned_.exchange(1, std::memory_order_acquire) == 0;
    }
    // Waits on the ladder. False, and not the owner, where callers complete.
    bool own() noexcept;
    // After try_own() or own(): runs work() inside the library, gives the engine back, and returns
    // what work() did.
    template <class Work>
    auto as_owner(Work work) noexcept;
    // Gives the engine back. Without an offload thread it then issues what others queued meanwhile,
    // which would else wait for the next call. The exchange, a full fence, pairs with the push
    // before a failed try_own(). (It is 5 ns faster than store and fence.)
    void leave() noexcept {
        // In this order: the offload thread comes here while MPI_Init still fills in the facts.
        if (thread.exists() || !facts.queues) return owned_.store(0, std::memory_order_release);
        owned_.exchange(0, std::memory_order_seq_cst);
        if (!queue_.empty()) [[unlikely]]
            issue_left_over();
    }
    // True where this thread may call the library without owning the engine (14 ns a call less):
    // it was the last one here, nobody owns the engine, and nothing is queued, so order is kept.
    // Another thread that comes now may own the engine meanwhile. The library's own lock, which it
    // has at this level, keeps the two apart. False with an offload thread, which would compete.
    bool alone() noexcept {
        if (thread.exists()) return false;
        if (last_caller_.load(std::memory_order_relaxed) != &this_thread) {
            last_caller_.store(&this_thread, std::memory_order_relaxed);
            return false;
        }
        return owned_.load(std::memory_order_relaxed) == 0 && all_issued();
    }

    // --- who completes requests
    bool callers_complete() const noexcept {
        return completer_.load(std::memory_order_acquire) == Completer::callers;
    }
    // From now on callers do. Waits for the owner, so that no Testsome over the window is running
    // any more. In a callback it does nothing: that may be inside such a Testsome.
    void let_callers_complete() noexcept;
    // The same from the beginning, before other threads come.
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
    // The queue is empty, and nobody is issuing what was popped from it. The fence: a thread that
    // sees the queue emptied also sees the right to issue taken or given back.
    bool nothing_queued() const noexcept {
        if (!queue_.empty()) return false;
        std::atomic_thread_fence(std::memory_order_acquire);
        return issuing_.load(std::memory_order_acquire) == 0 || this_thread.is(Inside::issuing);
    }
    bool queue_is_empty() const noexcept { return queue_.empty(); }
    uint64_t posted() const noexcept { return posted_.load(std::memory_order_relaxed); }
    // The library has seen everything that was posted before. Acquire: pairs with drain_queue().
    bool all_issued() const noexcept {
        const uint64_t before = posted();
        return issued_.load(std::memory_order_acquire) >= before;
    }
    // Returns when that is so. Issues the rest itself where the owner takes long: the owner may be
    // in a function of the program that waits for a lock which this thread holds.
    void wait_until_issued() noexcept;
    // All that was posted is complete, as far as this thread can know.
    bool is_idle() const noexcept { return all_issued() && !has_work(); }
    // Nobody needs the engine now: calls go to the library, as if there were none.
    bool library_serves() const noexcept {
        return facts.library_waits_as_well() && (!facts.queues || is_idle());
    }
    void expect_many_producers(bool many) noexcept { queue_.expect_many_producers(many); }

    // --- owner only
    bool drain() noexcept {  // issues all that is queued; true if there was something
        return !nothing_queued() && drain_queue();
    }
    bool step() noexcept;  // drain, one look at the window and at the jobs; true if something moved
    void forget(Slot* slot) noexcept;  // takes an active slot out of the window
    // Asked in a callback: the owner is in the library's Testsome over the window.
    bool is_polling() const noexcept { return owner_at_ == OwnerAt::testsome; }
    void reset() noexcept;  // nothing of an earlier life stays

    // A slot whose request the library has already: it completes in the window. Any thread.
    void adopt(Slot* slot) noexcept;

    // --- one look, of any thread
    // At all that is under way; where callers complete, at this slot too. True if something moved.
    bool look(Slot* slot = nullptr) noexcept;
    // Makes no progress: functions that the library's progress calls may ask.
    bool is_complete(Slot* slot) noexcept;
    void ask(Slot* slot) noexcept;  // where callers complete, from unowned()
    // Where callers complete: attempt(true) without owning the engine, after a look at the jobs and
    // after all that is queued, if no other thread is issuing.
    template <class Attempt>
    bool unowned(Attempt attempt) noexcept;
    // For a Test: attempt(false), then attempt(true) as the owner or unowned(). True if one of the
    // two was finished.
    template <class Attempt>
    bool progress_once(Attempt attempt) noexcept;
    bool has_work() const noexcept {
        return !window_.empty() || !queue_.empty() ||
               library::jobs_under_way.load(std::memory_order_relaxed) != 0;
    }

    // --- waiting, of any thread of the program
    // Calls attempt(may_call) until it says that it is finished. May it call the library? Yes where
    // this thread owns the engine, and where callers complete.
    template <class Attempt>
    void wait_until(Attempt attempt, WaitsFor waits_for = WaitsFor::messages) noexcept;
    // For a finished() that runs functions of the program, which may wait for other threads: this
    // thread does not own the engine meanwhile.
    template <class Finished>
    void wait_unowned(Finished finished) noexcept;
    // finished() and look() by turns, with a rest after each look that moved nothing.
    template <class Finished, class Look>
    void alternate(Finished finished, Look look) const noexcept {
        for (Ladder ladder(facts.wait); !finished();)
            if (look())
                ladder.reset();
            else
                rest(ladder);
    }
    template <class Finished>
    void rest_until(Finished finished) const noexcept {
        alternate(finished, []() noexcept { return false; });
    }
    // With more blocked threads than CPUs, the one that can go on must get one soon.
    void rest(Ladder& ladder) const noexcept {
        if (callers_.load(std::memory_order_relaxed) > facts.callers_with_cpu)
            ladder.rest_in_crowd();
        else
            ladder.rest();
    }
    // The same, or a sleep until what the thread waits for comes.
    void rest_or_sleep(Ladder& ladder, SleepingWait& sleeper, WaitsFor waits_for) const noexcept;
    // After a Test that found nothing: on an oversubscribed node the sender needs this CPU.
    void give_way_if_crowded() const noexcept {
        if (facts.yields_at_once && this_thread.failing_looks.one_more()) Ladder::give_way();
    }
    bool somebody_waits() const noexcept { return callers_.load(std::memory_order_relaxed) != 0; }

  private:
    friend class WaitingCaller;
    enum class OwnerAt : uint8_t { loop, testsome };

    // The right to pop from the queue and to change the window. Nests. Mostly the owner's; while
    // the owner is in the library's Testsome another thread may issue, which only adds to the end
    // of the window.
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
    void drain_unowned() noexcept;
    bool try_issue() noexcept {
        return issuing_.load(std::memory_order_relaxed) == 0 &&
               issuing_.exchange(1, std::memory_order_acquire) == 0;  // pairs with ~IssueScope()
    }
    void issue_left_over() noexcept;
    bool test(Slot* slot) noexcept;
    void test_one_by_one(const RequestWindow::Part& part) noexcept;
    bool poll_by_testany(const RequestWindow::Part& part) noexcept;
    void finish(Slot* slot, const MPI_Status& status, int error) noexcept;
    void issue(Slot* slot) noexcept;
    bool poll() noexcept;
    void complete(Slot* slot, int error) noexcept;
    void end(Slot* slot, int error) noexcept;
    void ask_forgotten() noexcept;

    alignas(64) std::atomic<uint32_t> owned_{0};
    std::atomic<const ThreadState*> last_caller_{nullptr};
    alignas(64) std::atomic<Completer> completer_{Completer::owner};
    std::atomic<uint8_t> kinds_{0};  // a bit for each RequestKind
    // Operations queued so far, counted before the push. Only the posting threads write it: below
    // MPI_THREAD_MULTIPLE a post then finds the line in its own cache.
    alignas(64) std::atomic<uint64_t> posted_{0};
    // Operations popped and given to the library. Written after the issue, in an IssueScope.
    alignas(64) std::atomic<uint64_t> issued_{0};
    std::atomic<uint32_t> issuing_{0};
    // Program threads in a blocking call; the offload thread leaves the engine to them.
    alignas(64) std::atomic<uint32_t> callers_{0};
    OwnerAt owner_at_ = OwnerAt::loop;  // a callback of the library's enters us from the Testsome
    alignas(64) RequestWindow window_;
    CommandQueue queue_;
};

// Testsome raises a completion error with the handler of MPI_COMM_WORLD, on the owner's thread. So
// only operations of communicators with the same handler, no function of the program, are queued
// and complete in the window.
bool window_serves(CommTraits::Handler handler) noexcept;
bool is_small_message(const CallFacts& facts) noexcept;
// Before a nonblocking reduction. From the first one with an operator of the program on, callers
// complete.
void note_op(MPI_Op op) noexcept;
// The library looks once at all that is under way.
void poll_library() noexcept;

extern Engine* engine;  // made by start_engine(), kept to the end of the process

// One look at each job that no other thread looks at. True if one is done. Inside the library; the
// thread need not own the engine.
inline bool advance_jobs() noexcept {
    return library::jobs_under_way.load(std::memory_order_relaxed) != 0 && engine->jobs.advance();
}

// A program thread that waits. The offload thread leaves the engine to it.
class WaitingCaller {
  public:
    explicit WaitingCaller(Engine& engine) noexcept
        // Not one that sleeps between looks: all progress would become as slow as its sleeps.
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

template <class Work>
auto Engine::as_owner(Work work) noexcept {
    struct Ownership {
        Engine& engine;
        ~Ownership() { engine.leave(); }
    };
    const Ownership ownership{*this};
    const Within owner(Inside::library | Inside::engine);  // calls that come back are not ours
    return work();
}

template <class Attempt>
bool Engine::unowned(Attempt attempt) noexcept {
    if (!queue_.empty()) drain_unowned();
    if (freed_endings.load(std::memory_order_acquire) != 0) [[unlikely]]
        ask_forgotten();
    const Within library(Inside::library);
    advance_jobs();
    return attempt(true);
}

template <class Attempt>
bool Engine::progress_once(Attempt attempt) noexcept {
    if (this_thread.is(Inside::engine)) return attempt(true);
    const auto look_and_attempt = [&]() noexcept {
        if (has_work()) step();
        return attempt(true);
    };
    const bool finished = attempt(false) || (own() ? as_owner(look_and_attempt) : unowned(attempt));
    if (finished)
        this_thread.failing_looks.end();
    else
        give_way_if_crowded();
    return finished;
}

template <class Attempt>
void Engine::wait_until(Attempt attempt, WaitsFor waits_for) noexcept {
    // In a callback this thread owns the engine already. A callback of Testsome never waits for a
    // request of that Testsome: no MPI function that calls back allows it.
    if (this_thread.is(Inside::engine))
        return alternate([&]() noexcept { return attempt(true); },
                         [this]() noexcept { return step(); });
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
        if (callers_complete())
            finished = unowned(attempt);
        else if (try_own())
            finished = as_owner([&]() noexcept {
                moved = has_work() && step();
                return attempt(true);
            });
        else
            finished = attempt(false);
        if (finished) return;
        if (moved)
            ladder.reset();
        else
            rest_or_sleep(ladder, sleeper, waits_for);
    }
}

template <class Finished>
void Engine::wait_unowned(Finished finished) noexcept {
    const WaitingCaller caller(*this);
    alternate(finished, [this]() noexcept { return look(); });
}

}  // namespace vecmpi::offload
