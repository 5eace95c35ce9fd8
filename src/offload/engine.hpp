// SPDX-License-Identifier: BSD-3-Clause
// The engine: one queue, one window of active requests, one loop, one owner at a time. Other files
// of src/offload enter it as the owner (try_own, own, run_until) or by the queue (push). Nothing
// outside src/offload sees it.
#pragma once

#include <pthread.h>

#include <utility>

#include "command_queue.hpp"
#include "jobs.hpp"

namespace vecmpi::offload {

// Requests that one Testsome looks at. More wait their turn; the window rotates.
constexpr unsigned testsome_window = 64;

// Per thread: how deep it is inside real functions that we called. Loader's static TLS: no
// allocation on access.
struct ThreadState {
    int inside = 0;            // >0: calls from here are the library's own or a callback's
    bool owns_engine = false;  // this thread holds the engine right now
    bool issues = false;       // this thread holds the right to issue, see Engine::IssueScope
    bool is_offload_thread = false;
    int inside_job = 0;                  // >0: in Job::advance()
    int loops = 0;                       // >0: in a loop of the engine's, which rests by itself
    bool library_looks_at_jobs = false;  // it polls by itself
    // The first error of a job that this call of the program completed: raised as the call ends.
    int job_error = MPI_SUCCESS;
    MPI_Comm job_comm = MPI_COMM_NULL;
};
extern thread_local constinit ThreadState this_thread __attribute__((tls_model("initial-exec")));

// What ends a wait: a message, or what another rank of the node writes to shared memory.
enum class WaitsFor : uint8_t { messages, memory };

// Of one wait that sleeps now and then. Between two sleeps its looks arm what they find empty, and
// it lies at the door where it waits for memory.
class Bed {
  public:
    Bed() = default;
    ~Bed() { get_up(); }
    Bed(const Bed&) = delete;
    Bed& operator=(const Bed&) = delete;
    // The next look is the last one before a sleep.
    void lie_down(bool at_door) noexcept;
    // False where nothing was armed, or the door is shut: it looks again at once.
    bool sleep() noexcept;
    void get_up() noexcept;
    bool is_refused_often() const noexcept { return refusals_ % library::most_refusals == 0; }
    // Has the library moved something since the last call? What wakes nobody must be looked for.
    bool library_moved() noexcept {
        return std::exchange(events_, library::library_events) != library::library_events;
    }

  private:
    int door_ = -1;
    uint32_t refusals_ = 0;  // in a row
    uint64_t events_ = library::library_events;
};

class Engine {
  public:
    // --- ownership: acquire pairs with release; what the owner wrote is seen by the next one.
    bool try_own() noexcept {
        return owned_.load(std::memory_order_relaxed) == 0 &&
               owned_.exchange(1, std::memory_order_acquire) == 0;
    }
    // Waits on the ladder. False, and not the owner, where callers ask (callers_ask).
    bool own() noexcept;
    // From now on callers ask. Waits for the owner, who comes back as long as they do not.
    void let_callers_ask() noexcept;
    // True where no other thread came by since this one last did, nobody holds the engine, and
    // nothing is queued: this thread then needs no ownership to call the library, which has a lock
    // of its own at this level (14 ns a call less). A thread that comes now holds the engine beside
    // it, which costs time at the library's lock, not order. Only without an offload thread, which
    // would be in the way.
    bool alone() noexcept {
        if (has_thread_) return false;
        if (last_caller_.load(std::memory_order_relaxed) != &this_thread) {
            last_caller_.store(&this_thread, std::memory_order_relaxed);
            return false;
        }
        return owned_.load(std::memory_order_relaxed) == 0 && all_issued();  // order is kept
    }

    // Has the library seen everything that was posted before? Acquire: pairs with drain_queue().
    bool all_issued() const noexcept {
        const uint64_t posted = posted_.load(std::memory_order_relaxed);
        return issued_.load(std::memory_order_acquire) >= posted;
    }
    // Returns when that is so. Does not wait for the owner, who may be inside a function of the
    // program that waits for a lock which this thread holds: issues the rest beside it.
    void wait_until_issued() noexcept;

    // Gives the engine back. Without a thread, what others queued while we held it would wait for
    // somebody's next call: the exchange, a full fence, pairs with the queue's push before a failed
    // try_own (5 ns less than store and fence).
    void leave() noexcept {
        if (!queues || has_thread_) return release();
        owned_.exchange(0, std::memory_order_seq_cst);
        if (!queue_.empty()) [[unlikely]]
            issue_left_over();
    }

    // --- owner only
    bool drain() noexcept {  // issues all that is queued; true if there was something
        return !nothing_queued() && drain_queue();
    }
    bool step() noexcept;  // drain, one look at the window and at the jobs; true if something moved
    void forget(Slot* slot) noexcept;                      // takes an active slot out of the window
    bool is_polling() const noexcept { return polling_; }  // we are in a callback of Testsome
    void reset_window() noexcept;                          // nothing of an earlier life stays
    // A request of the library that is pending until release_blocker(): beside it, Testall looks at
    // requests and takes none. MPI_REQUEST_NULL where the library refuses one.
    MPI_Request blocker() noexcept;
    void release_blocker() noexcept;

    // --- any thread
    void push(Slot* slot) noexcept;
    void look(Slot* slot) noexcept;  // one look for the completion of this one
    // Without progress, so that a function that the library's progress calls may ask.
    bool is_complete(const Slot* slot) noexcept;
    void ask(Slot* slot) noexcept;  // the same where callers ask, from beside_owner()
    // Where callers ask: attempt(true) beside the owner, after all that is queued, if no other
    // thread is issuing.
    template <class Attempt>
    bool beside_owner(Attempt attempt) noexcept;
    // Nothing waits, and nobody is issuing what he took from the queue. The fence: who sees that
    // the queue was emptied sees the right to issue taken or given back.
    bool nothing_queued() const noexcept {
        if (!queue_.empty()) return false;
        std::atomic_thread_fence(std::memory_order_acquire);
        return issuing_.load(std::memory_order_acquire) == 0 || this_thread.issues;
    }
    bool has_work() const noexcept {
        return active_count_.load(std::memory_order_relaxed) != 0 || !queue_.empty() ||
               library::jobs_under_way.load(std::memory_order_relaxed) != 0;
    }

    // A job came: the offload thread may be parked.
    void wake_for_job() noexcept {
        if (has_thread_) wake_thread();
    }

    // After a look in vain. More blocked threads than CPUs: the one that can go on has to be let in
    // soon.
    void rest(Ladder& ladder) const noexcept {
        if (callers_.load(std::memory_order_relaxed) > callers_with_cpu)
            ladder.rest_in_crowd();
        else
            ladder.rest();
    }

    // The same of a wait that may sleep until what it waits for comes.
    void rest_or_sleep(Ladder& ladder, Bed& bed, WaitsFor waits_for) const noexcept;

    // After a failing look of a Test: on an oversubscribed node whoever must send has no CPU
    // meanwhile.
    void give_way_if_crowded() const noexcept {
        if (yields_at_once) Ladder::give_way();
    }

    // attempt(may_call) -> finished. Called again and again; it may call the library as the owner,
    // where this thread can be it, and where callers ask.
    template <class Attempt>
    void run_until(Attempt attempt, WaitsFor waits_for = WaitsFor::messages) noexcept;

    // One look at all that is under way, of a thread that waits for something of its own without
    // holding the engine. True if something moved.
    bool look_meanwhile() noexcept;

    // --- life
    void expect_many_producers(bool many) noexcept { queue_.expect_many_producers(many); }
    bool start_thread(const OffloadPlan& plan) noexcept;
    void stop_thread() noexcept;
    bool has_thread() const noexcept { return has_thread_; }
    bool thread_spins() const noexcept {
        return has_thread_ && spins_.load(std::memory_order_relaxed);
    }
    // The library waits as well as our loop would, and nobody else needs the engine meanwhile.
    bool library_waits_as_well() const noexcept {
        return library_may_wait && !queues && wait.max_sleep_us == 0;
    }

    SlotPool pool;
    JobList jobs;
    WaitPolicy wait;                         // of blocked program threads
    bool yields_at_once = false;             // oversubscribed: failing Tests give the CPU away
    uint32_t callers_with_cpu = UINT32_MAX;  // more blocked threads than these yield soon
    // Operations may be queued: for a thread of its own, or, at MPI_THREAD_MULTIPLE, because
    // blocked threads must wait on our ladder, one of them as the owner.
    bool queues = false;
    bool many_callers = false;        // threads of the program may wait at once, or one and ours
    bool library_may_wait = false;    // its own waits follow our ladder, or may spin
    bool callers_serve_jobs = false;  // in waits of the library too, by its polls
    bool library_locks = false;       // it is at MPI_THREAD_MULTIPLE: it polls with its lock held
    std::atomic<bool> persistent_requests{false};   // some were made: Testall may refuse them
    std::atomic<bool> generalized_requests{false};  // note_generalized_requests()
    std::atomic<bool> virtual_persistent{false};    // adopt_persistent() gave the program some
    // The owner may be in a function of the program that waits for another thread (an operator, or
    // the query function of a generalized request), or a communicator in the window has another
    // error handler than MPI_COMM_WORLD. Then nobody is waited for: each thread asks the library
    // about its own requests, those in the window too, and the owner issues and makes progress, but
    // completes nothing. Stored by let_callers_ask(), never taken back while the engine runs.
    std::atomic<bool> callers_ask{false};
    // The library holds its lock while it runs an operator of the program: MPICH 5 and Intel MPI
    // do, MPICH 4 does not. Such an operator must not run on the offload thread, where it may wait
    // for a lock that a thread of the program holds, who waits for the library's.
    bool operators_lock_library = false;
    // So from the first one on the offload thread stays out of the library; callers issue at once.
    // It goes on with jobs where nobody else would. Any thread; never taken back while the engine
    // runs.
    void let_thread_stand_back() noexcept;
    bool thread_stands_back() const noexcept {
        return thread_stands_back_.load(std::memory_order_relaxed);
    }
    int tag_upper_bound = 32767;

  private:
    friend class CallerInside;
    static void* thread_entry(void* engine) noexcept;
    // What thread_spins() says, for the thread itself, which may run before it is known to exist.
    bool has_own_cpu() const noexcept { return spins_.load(std::memory_order_relaxed); }
    void thread_main() noexcept;
    bool thread_turn() noexcept;
    bool park_if_idle() noexcept;
    bool waits_for_node(WaitsFor waits_for) const noexcept;
    bool can_be_woken(WaitsFor waits_for) const noexcept;
    bool progress_only() noexcept;
    bool drain_queue() noexcept;
    void issue_beside_owner() noexcept;

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
        bool nested_;
    };
    bool try_issue() noexcept {
        return issuing_.load(std::memory_order_relaxed) == 0 &&
               issuing_.exchange(1, std::memory_order_acquire) == 0;  // pairs with ~IssueScope()
    }
    void issue_left_over() noexcept;
    void wake_thread() noexcept;
    bool posts_since(uint64_t* posted_before) const noexcept;
    bool doze(uint64_t length_us) noexcept;
    void claim_cpu() noexcept;
    void share_cpu() noexcept;
    void release() noexcept { owned_.store(0, std::memory_order_release); }
    bool test_one_by_one(uint32_t base, int looked_at) noexcept;
    void finish(Slot* slot, const MPI_Status& status, int error) noexcept;
    void issue(Slot* slot) noexcept;
    bool poll() noexcept;
    void complete(Slot* slot, int error) noexcept;
    void compute_as(const FloatEnvironment& floats) noexcept;

    alignas(64) std::atomic<uint32_t> owned_{0};
    std::atomic<const ThreadState*> last_caller_{nullptr};
    // Operations queued so far, counted before the push. Written by the posting threads only, so
    // that below MPI_THREAD_MULTIPLE, where they take turns, a post finds the line in its own
    // cache.
    alignas(64) std::atomic<uint64_t> posted_{0};
    // Operations taken from the queue and given to the library; written after the issue, with the
    // right to issue.
    alignas(64) std::atomic<uint64_t> issued_{0};
    std::atomic<uint32_t> issuing_{0};
    alignas(64) std::atomic<uint32_t> callers_{
        0};  // program threads in a blocking call; the thread stands back
    alignas(64) std::atomic<uint32_t> parked_{
        0};  // futex word of the offload thread: enum ThreadRest
    std::atomic<bool> stop_{false};

    // The window: request i belongs to slot window_slots_[i]. Read by the owner, changed in an
    // IssueScope; the count is released after what it counts.
    alignas(64) std::atomic<uint32_t> active_count_{0};
    uint32_t cursor_ = 0;
    std::atomic<FloatEnvironment>
        floats_{};  // of the last poster of a reduction; written in an IssueScope
    FloatEnvironment thread_floats_{};  // what the offload thread has; that thread only
    bool polling_ = false;              // a callback of the library entered us from inside Testsome
    MPI_Request blocker_ = MPI_REQUEST_NULL;
    MPI_Request window_requests_[slot_count];
    uint16_t window_slots_[slot_count];

    CommandQueue queue_;

    bool has_thread_ = false;
    std::atomic<bool> thread_stands_back_{false};  // seen by the next owner: stored before own()
    std::atomic<bool> thread_stood_back_{false};   // it does, and has left nothing to issue
    // The thread has its CPU to itself. It finds out otherwise, and tries again: both ways, at run
    // time.
    std::atomic<bool> spins_{false};
    bool asymmetric_ = false;  // fences between push() and the thread that parks
    OffloadPlan plan_;
    pthread_t thread_{};
};

// One look at each job that no other thread looks at. True if one is done. Inside the library, as
// the engine's owner or beside him.
inline bool advance_jobs() noexcept;

// Undoes prepare_to_poll(); before MPI_Finalize.
void stop_polling() noexcept;
// The library looks once at all that is under way.
void poll_library() noexcept;

extern Engine* engine;  // made by start_engine(), kept to the end of the process

// A program thread that waits: the offload thread leaves the engine to it.
class CallerInside {
  public:
    explicit CallerInside(Engine& engine) noexcept
        // A caller that sleeps between looks would make all progress as slow as its sleeps.
        : engine_(engine), counted_(engine.many_callers && engine.wait.max_sleep_us == 0) {
        if (counted_) engine_.callers_.fetch_add(1, std::memory_order_relaxed);
    }
    ~CallerInside() {
        if (counted_) engine_.callers_.fetch_sub(1, std::memory_order_relaxed);
    }
    CallerInside(const CallerInside&) = delete;
    CallerInside& operator=(const CallerInside&) = delete;

  private:
    Engine& engine_;
    bool counted_;
};

// In a loop of the engine's. What its last look armed is forgotten with it.
class LoopScope {
  public:
    LoopScope() noexcept { ++this_thread.loops; }
    ~LoopScope() {
        --this_thread.loops;
        library::forget_armed();
    }
    LoopScope(const LoopScope&) = delete;
    LoopScope& operator=(const LoopScope&) = delete;
};

// Marks this thread as inside real functions and as the owner, for a scope in which it is.
class OwnerScope {
  public:
    OwnerScope() noexcept {
        ++this_thread.inside;
        this_thread.owns_engine = true;
    }
    ~OwnerScope() {
        this_thread.owns_engine = false;
        --this_thread.inside;
    }
    OwnerScope(const OwnerScope&) = delete;
    OwnerScope& operator=(const OwnerScope&) = delete;
};

// Marks this thread as inside real functions, for a scope in which it need not be the owner.
class InsideLibrary {
  public:
    InsideLibrary() noexcept { ++this_thread.inside; }
    ~InsideLibrary() { --this_thread.inside; }
    InsideLibrary(const InsideLibrary&) = delete;
    InsideLibrary& operator=(const InsideLibrary&) = delete;
};

inline bool advance_jobs() noexcept {
    return library::jobs_under_way.load(std::memory_order_relaxed) != 0 && engine->jobs.advance();
}

template <class Attempt>
bool Engine::beside_owner(Attempt attempt) noexcept {
    if (!queue_.empty() && try_issue()) issue_beside_owner();
    const InsideLibrary inside;
    advance_jobs();
    return attempt(true);
}

template <class Attempt>
void Engine::run_until(Attempt attempt, WaitsFor waits_for) noexcept {
    // From a callback: we hold the engine already. A callback of Testsome cannot wait for a request
    // that this very Testsome looks at; no MPI function that calls back allows that.
    if (this_thread.owns_engine) {
        for (Ladder ladder(wait); !attempt(true);)
            if (step())
                ladder.reset();
            else
                rest(ladder);
        return;
    }
    if (queues && alone() && !has_work()) {
        const InsideLibrary inside;
        if (attempt(true)) return;
    }
    CallerInside inside(*this);
    const LoopScope loop;
    Ladder ladder(wait);
    Bed bed;
    for (;;) {
        bool moved = false;
        bool finished;
        if (callers_ask.load(std::memory_order_acquire)) {
            finished = beside_owner(attempt);
        } else if (try_own()) {
            {
                OwnerScope scope;
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
            rest_or_sleep(ladder, bed, waits_for);
    }
}

}  // namespace vecmpi::offload
