// SPDX-License-Identifier: BSD-3-Clause
// Wait and Test on any mixture of virtual, real and null requests (MPI 4.0, 3.7.3 and 3.7.5). All
// end in one loop, Engine::run_until; they differ only in what one attempt must find.
#include <algorithm>
#include <memory>
#include <mutex>
#include <new>

#include "engine.hpp"
#include "statuses.hpp"

namespace vecmpi::offload {

namespace {

// The library's own answer for a null or inactive request, MPI_ERROR left alone.
void set_empty(MPI_Status* status) noexcept {
    if (status == MPI_STATUS_IGNORE) return;
    MPI_Request none = MPI_REQUEST_NULL;
    int flag;
    real.Test(&none, &flag, status);
}

void copy_status(const MPI_Status& from, MPI_Status* to) noexcept {
    if (to == MPI_STATUS_IGNORE) return;
    const int kept = to->MPI_ERROR;  // only MPI_ERR_IN_STATUS may change it
    *to = from;
    to->MPI_ERROR = kept;
}

// Beside an error of another request, those that have none say so.
void no_errors(MPI_Status statuses[], int from, int to) noexcept {
    for (int i = from; statuses != MPI_STATUSES_IGNORE && i < to; ++i)
        statuses[i].MPI_ERROR = MPI_SUCCESS;
}

enum class Readiness { pending, complete, inactive, unknown };

Readiness readiness(const Slot* slot) noexcept {
    if (!slot) return Readiness::unknown;
    switch (slot->state.load(std::memory_order_acquire)) {
        case SlotState::done:
            return Readiness::complete;
        case SlotState::inactive:
            return Readiness::inactive;
        default:
            return Readiness::pending;
    }
}

// Where callers ask, the state is what the library says now.
Readiness look_at(Slot* slot, bool may_call) noexcept {
    if (slot && may_call && engine->callers_ask.load(std::memory_order_acquire)) engine->ask(slot);
    return readiness(slot);
}

// Takes the result of a complete virtual request: the slot is free afterwards, or inactive if
// persistent.
int consume(Slot* slot, MPI_Request* request, MPI_Status* status) noexcept {
    copy_status(slot->status, status);
    const int error = slot->error;
    if (slot->is_job && error != MPI_SUCCESS) note_job_error(slot->comm, error);
    if (slot->persistent) {
        slot->state.store(SlotState::inactive, std::memory_order_relaxed);
    } else {
        engine->pool.give(slot);
        *request = MPI_REQUEST_NULL;
    }
    return error;
}

// One look for a Test. First without the engine; then as its owner, since only the library knows
// real requests, or beside him.
template <class Attempt>
bool look_once(Attempt attempt) noexcept {
    if (this_thread.owns_engine) return attempt(true);
    if (attempt(false)) return true;
    bool finished;
    if (engine->own()) {
        {
            OwnerScope scope;
            if (engine->has_work()) engine->step();
            finished = attempt(true);
        }
        engine->leave();
    } else {
        finished = engine->beside_owner(attempt);
    }
    if (!finished) engine->give_way_if_crowded();
    return finished;
}

// One look at a virtual request: its own thread moves the engine if it spins, else we do, and where
// callers ask.
bool look_at_slot(Slot* slot) noexcept {
    if (readiness(slot) != Readiness::pending) return true;
    if (!engine->thread_spins() || engine->callers_ask.load(std::memory_order_relaxed))
        engine->look(slot);
    if (readiness(slot) != Readiness::pending) return true;
    engine->give_way_if_crowded();
    return false;
}

// Runs attempt until it is finished, or once.
template <class Attempt>
bool run(bool blocking, Attempt attempt) noexcept {
    if (!blocking) return look_once(attempt);
    engine->run_until(attempt);
    return true;
}

// ---- one request ------------------------------------------------------------------------------

int complete_real(bool blocking, MPI_Request* request, int* flag, MPI_Status* status) noexcept {
    int rc = MPI_SUCCESS;
    run(blocking, [&](bool may_call) noexcept {
        *flag = 0;
        if (!may_call) return false;
        rc = real.Test(request, flag, status);
        return *flag != 0 || rc != MPI_SUCCESS;
    });
    return rc;
}

int complete_one(bool blocking, MPI_Request* request, int* flag, MPI_Status* status) noexcept {
    if (!is_virtual(*request)) return complete_real(blocking, request, flag, status);
    Slot* slot = engine->pool.find(*request);
    if (!slot)
        return real.Test(request, flag, status);  // the library's own error for a stale handle
    if (blocking && readiness(slot) == Readiness::pending)
        engine->run_until([slot](bool may_call) noexcept {
            return look_at(slot, may_call) != Readiness::pending;
        });
    *flag = blocking || look_at_slot(slot);
    if (!*flag) return MPI_SUCCESS;
    if (readiness(slot) == Readiness::inactive) {
        set_empty(status);
        return MPI_SUCCESS;
    }
    return consume(slot, request, status);
}

// ---- several requests, all real -----------------------------------------------------------------

bool any_virtual(int count, const MPI_Request requests[]) noexcept {
    return requests && std::any_of(requests, requests + std::max(count, 0), is_virtual);
}

// ---- several requests, some virtual -------------------------------------------------------------

// The real ones of a mixture, in order, with their places in the program's array.
class RealPart {
  public:
    RealPart(int count, const MPI_Request requests[]) noexcept
        : places_(new (std::nothrow) int[static_cast<size_t>(count)]),
          handles_(new (std::nothrow) MPI_Request[static_cast<size_t>(count)]),
          statuses_(new (std::nothrow) MPI_Status[static_cast<size_t>(count)]) {
        if (!usable()) return;
        for (int i = 0; i < count; ++i)
            if (!is_virtual(requests[i]) && requests[i] != MPI_REQUEST_NULL) {
                places_[static_cast<size_t>(size)] = i;
                handles_[static_cast<size_t>(size++)] = requests[i];
            }
    }
    bool usable() const noexcept { return places_ && handles_ && statuses_; }
    int place(int i) const noexcept { return places_[static_cast<size_t>(i)]; }
    MPI_Request* handles() noexcept { return handles_.get(); }
    MPI_Status* statuses() noexcept { return statuses_.get(); }
    int size = 0;

    // The i-th one back to the program after a completion that returned rc: its handle, status and
    // error.
    int give_back(int i, int rc, MPI_Request requests[], MPI_Status* status) const noexcept {
        const MPI_Status& found = statuses_[static_cast<size_t>(i)];
        const int error = rc == MPI_SUCCESS ? MPI_SUCCESS : found.MPI_ERROR;
        requests[place(i)] = handles_[static_cast<size_t>(i)];
        if (error != MPI_ERR_PENDING) copy_status(found, status);
        return error;
    }

  private:
    std::unique_ptr<int[]> places_;
    std::unique_ptr<MPI_Request[]> handles_;
    std::unique_ptr<MPI_Status[]> statuses_;
};

class Mixture {
  public:
    // once: a real request that was found is not looked at again, persistent or not.
    Mixture(int count, MPI_Request requests[], bool once = false) noexcept
        : count_(count), requests_(requests), reals_(count, requests), once_(once) {}
    bool usable() const noexcept { return reals_.usable(); }

    // Testall: true when there is something to report. all_complete: the flag of MPI_Testall.
    bool look_at_all(bool may_call, int* rc) noexcept;
    int report_all(MPI_Status statuses[]) noexcept;
    bool all_complete() const noexcept { return all_complete_; }
    bool find_any(bool may_call, int* index, MPI_Status* status, int* rc) noexcept;
    bool find_some(bool may_call, int* outcount, int indices[], MPI_Status statuses[],
                   int* rc) noexcept;
    int stale() const noexcept;

  private:
    bool test_reals(bool take, int* flag) noexcept;
    int report_real(int index, MPI_Status* status) noexcept;
    bool virtuals_inactive() const noexcept;
    Slot* slot(int i) const noexcept {
        return is_virtual(requests_[i]) ? engine->pool.find(requests_[i]) : nullptr;
    }

    int count_;
    MPI_Request* requests_;
    RealPart reals_;
    bool once_;
    bool all_complete_ = false;
    bool reals_taken_ = false;
    int real_rc_ = MPI_SUCCESS;
};

// Place of a virtual handle that is not in use, or -1.
int Mixture::stale() const noexcept {
    for (int i = 0; i < count_; ++i)
        if (is_virtual(requests_[i]) && !slot(i)) return i;
    return -1;
}

bool Mixture::virtuals_inactive() const noexcept {
    for (int i = 0; i < count_; ++i)
        if (is_virtual(requests_[i]) && readiness(slot(i)) != Readiness::inactive) return false;
    return true;
}

// Testall over the real ones, which takes them if all requests are complete or one of them failed.
// Also while a virtual one is pending: the library polls files only when it is asked about them,
// and an error is due at once. Then the blocker keeps it from taking anything else.
bool Mixture::test_reals(bool take, int* flag) noexcept {
    int size = reals_.size;
    if (!take) {
        reals_.handles()[size] = engine->blocker();
        if (reals_.handles()[size] == MPI_REQUEST_NULL) return false;
        ++size;  // there is room, since some request is virtual
    }
    real_rc_ = real.Testall(size, reals_.handles(), flag, reals_.statuses());
    return true;
}

bool Mixture::look_at_all(bool may_call, int* rc) noexcept {
    bool pending = false, failed = false;
    for (int i = 0; i < count_; ++i) {
        if (!is_virtual(requests_[i])) continue;
        Slot* looked_at = slot(i);
        const Readiness found = look_at(looked_at, may_call);
        pending |= found == Readiness::pending;
        failed |= found == Readiness::complete && looked_at->error != MPI_SUCCESS;
    }
    int flag = reals_.size == 0;
    if (reals_.size != 0 && (!may_call || !test_reals(failed || !pending, &flag))) return false;
    *rc = real_rc_;
    reals_taken_ = flag != 0 || real_rc_ == MPI_ERR_IN_STATUS;
    all_complete_ = flag != 0 && !pending;
    return all_complete_ || failed || real_rc_ != MPI_SUCCESS;
}

// What is not complete beside a failed one says so (MPI 4.0, 3.7.5).
int Mixture::report_all(MPI_Status statuses[]) noexcept {
    ErrorCollector errors(statuses);
    int next_real = 0;
    for (int i = 0; i < count_; ++i) {
        MPI_Status* status = status_at(statuses, i);
        if (next_real < reals_.size && reals_.place(next_real) == i) {
            errors.add(i, report_real(next_real++, status));
            continue;
        }
        Slot* virtual_slot = slot(i);
        const Readiness found =
            virtual_slot ? readiness(virtual_slot) : Readiness::inactive;  // or null
        if (found == Readiness::complete) {
            errors.add(i, consume(virtual_slot, &requests_[i], status));
        } else if (found == Readiness::pending) {
            errors.add(i, MPI_ERR_PENDING);
        } else {
            set_empty(status);
            errors.add(i, MPI_SUCCESS);
        }
    }
    return errors.result();
}

int Mixture::report_real(int index, MPI_Status* status) noexcept {
    if (!reals_taken_) return MPI_ERR_PENDING;
    return reals_.give_back(index, real_rc_, requests_, status);
}

bool Mixture::find_any(bool may_call, int* index, MPI_Status* status, int* rc) noexcept {
    for (int i = 0; i < count_; ++i)
        if (Slot* candidate = slot(i);
            candidate && look_at(candidate, may_call) == Readiness::complete) {
            *index = i;
            *rc = consume(candidate, &requests_[i], status);
            return true;
        }
    *index = MPI_UNDEFINED;
    if (reals_.size == 0) {
        set_empty(status);
        return virtuals_inactive();
    }
    if (!may_call) return false;
    int flag = 0, found = MPI_UNDEFINED;
    *rc = real.Testany(reals_.size, reals_.handles(), &found, &flag, status);
    if (*rc == MPI_SUCCESS && !flag) return false;
    if (found == MPI_UNDEFINED) return *rc != MPI_SUCCESS || virtuals_inactive();
    *index = reals_.place(found);
    requests_[*index] = reals_.handles()[found];
    return true;
}

bool Mixture::find_some(bool may_call, int* outcount, int indices[], MPI_Status statuses[],
                        int* rc) noexcept {
    ErrorCollector errors(statuses);
    int found = 0;
    bool reals_inactive = reals_.size == 0;
    for (int i = 0; i < count_; ++i)
        if (Slot* candidate = slot(i);
            candidate && look_at(candidate, may_call) == Readiness::complete) {
            indices[found] = i;
            errors.add(found, consume(candidate, &requests_[i], status_at(statuses, found)));
            ++found;
        }
    if (may_call && reals_.size > 0) {
        int more = 0;
        int* places = indices + found;
        real_rc_ = real.Testsome(reals_.size, reals_.handles(), &more, places, reals_.statuses());
        reals_inactive = more == MPI_UNDEFINED;
        for (int i = 0; i < more && !reals_inactive; ++i) {
            const MPI_Status& real_status = reals_.statuses()[i];
            const int place = reals_.place(places[i]);
            requests_[place] = reals_.handles()[places[i]];
            if (once_) reals_.handles()[places[i]] = MPI_REQUEST_NULL;
            places[i] = place;
            copy_status(real_status, status_at(statuses, found));
            errors.add(found++, real_rc_ == MPI_SUCCESS ? MPI_SUCCESS : real_status.MPI_ERROR);
        }
    }
    *rc = errors.result();
    const bool refused = real_rc_ != MPI_SUCCESS && real_rc_ != MPI_ERR_IN_STATUS;
    if (refused && *rc == MPI_SUCCESS) *rc = real_rc_;
    const bool none_left = found == 0 && !refused && reals_inactive && virtuals_inactive();
    *outcount = none_left ? MPI_UNDEFINED : found;
    return found > 0 || none_left || real_rc_ != MPI_SUCCESS;
}

// A stale virtual handle: the library gives its own error for that one.
int refuse_stale(MPI_Request* request) noexcept {
    int flag;
    return real.Test(request, &flag, MPI_STATUS_IGNORE);
}

int test_all_of(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) noexcept {
    int rc = MPI_SUCCESS;
    if (!any_virtual(count, requests)) {
        look_once([&](bool may_call) noexcept {
            *flag = 0;
            if (!may_call) return false;
            rc = real.Testall(count, requests, flag, statuses);
            return *flag != 0 || rc != MPI_SUCCESS;
        });
        return rc;
    }
    Mixture mixture(count, requests);
    if (!mixture.usable()) return MPI_ERR_NO_MEM;
    if (const int bad = mixture.stale(); bad >= 0) return refuse_stale(&requests[bad]);
    *flag = 0;
    if (!look_once([&](bool may_call) noexcept { return mixture.look_at_all(may_call, &rc); }))
        return MPI_SUCCESS;
    if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS)
        return rc;  // the library refused its part: nothing was completed
    *flag = mixture.all_complete();
    return mixture.report_all(statuses);
}

// What MPI_Waitall has so far: each request is taken as it completes, so that none runs on when one
// fails. And each once, because Testsome in MPICH 4.0 reports a complete persistent collective
// again and again.
class WaitAll {
  public:
    // The first `taken` were looked at by Testall, which found a failure: those that are null have
    // their statuses.
    WaitAll(int count, MPI_Request requests[], MPI_Status statuses[], int taken) noexcept
        : count_(count), requests_(requests), statuses_(statuses), failed_(taken != 0) {
        if (failed_) no_errors(statuses, taken, count);
        const bool fits = count <= on_stack;
        if (!fits) {
            more_places_.reset(new (std::nothrow) int[static_cast<size_t>(count)]);
            more_found_.reset(new (std::nothrow) MPI_Status[static_cast<size_t>(count)]);
            more_pending_.reset(new (std::nothrow) MPI_Request[static_cast<size_t>(count)]);
        }
        pending_ = fits ? few_pending_ : more_pending_.get();
        places_ = fits ? few_places_ : more_places_.get();
        found_ = fits ? few_found_ : more_found_.get();
        if (!usable()) return;
        for (int i = 0; i < count; ++i) {
            pending_[i] = requests[i];
            left_ += requests[i] != MPI_REQUEST_NULL;
            if (i >= taken) set_empty(status_at(statuses, i));
        }
    }
    bool usable() const noexcept { return places_ && found_ && pending_; }
    MPI_Request* pending() noexcept { return pending_; }  // null where taken

    // some(&outcount, indices, statuses) is a Testsome over pending(). True when nothing is left.
    template <class Testsome>
    bool look(Testsome some) noexcept {
        int found = 0;
        const int rc = some(&found, places_, found_);
        if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS) {
            refused_ = rc;
            return true;
        }
        for (int i = 0; found != MPI_UNDEFINED && i < found; ++i)
            take(places_[i], found_[i], rc == MPI_SUCCESS ? MPI_SUCCESS : found_[i].MPI_ERROR);
        return found == MPI_UNDEFINED || left_ == 0;
    }
    bool nothing_left() const noexcept { return left_ == 0; }

    int result() const noexcept {
        if (refused_ != MPI_SUCCESS) return refused_;
        return failed_ ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
    }

  private:
    void take(int place, const MPI_Status& status, int error) noexcept {
        --left_;
        requests_[place] = pending_[place];  // null, or the persistent request
        pending_[place] = MPI_REQUEST_NULL;
        if (error != MPI_SUCCESS && !failed_) no_errors(statuses_, 0, count_);
        failed_ |= error != MPI_SUCCESS;
        copy_status(status, status_at(statuses_, place));
        if (statuses_ != MPI_STATUSES_IGNORE) statuses_[place].MPI_ERROR = error;
    }

    static constexpr int on_stack = 64;
    int count_;
    MPI_Request* requests_;
    MPI_Status* statuses_;
    int left_ = 0;
    bool failed_;
    int refused_ = MPI_SUCCESS;
    int* places_;
    MPI_Status* found_;
    MPI_Request* pending_;
    MPI_Request few_pending_[on_stack];
    int few_places_[on_stack];
    MPI_Status few_found_[on_stack];
    std::unique_ptr<MPI_Request[]> more_pending_;
    std::unique_ptr<int[]> more_places_;
    std::unique_ptr<MPI_Status[]> more_found_;
};

// Requests that one look of a Waitall asks for, after a first look at all: messages mostly complete
// in order, and a look at 64 pending ones costs as much as three messages.
constexpr int waitall_part = 16;

// Takes requests from the left by Testall, with the library's own statuses. Returns how many have
// been looked at for the last time: count, or fewer where one failed (rc) or the library refused
// (rc).
int take_in_order(int count, MPI_Request requests[], MPI_Status statuses[], int* rc) noexcept {
    int done = 0, size = count;
    engine->run_until([&](bool may_call) noexcept {
        if (!may_call) return false;
        while (done < count) {
            int flag = 0;
            size = std::min(size, count - done);
            *rc = real.Testall(size, requests + done, &flag, status_at(statuses, done));
            if (*rc == MPI_SUCCESS && !flag) {
                size = waitall_part;
                return false;
            }
            if (*rc == MPI_ERR_IN_STATUS) no_errors(statuses, 0, done);
            done += size;
            if (*rc != MPI_SUCCESS) return true;
        }
        return true;
    });
    return done;
}

// As MPICH's Waitall leaves it, though the standard asks for it only beside MPI_ERR_IN_STATUS:
// programs look.
void clear_errors(int count, const MPI_Request requests[], MPI_Status statuses[]) noexcept {
    for (int i = 0; statuses != MPI_STATUSES_IGNORE && i < count; ++i)
        if (requests[i] != MPI_REQUEST_NULL) statuses[i].MPI_ERROR = MPI_SUCCESS;
}

// An error handler function of the program is called for each error that the library sees, and
// MPICH's Waitall sees one.
bool world_has_user_handler() noexcept {
    return agreement().valid && comm_traits(MPI_COMM_WORLD).handler == CommTraits::Handler::user;
}

int wait_all_by_library(int count, MPI_Request requests[], MPI_Status statuses[]) noexcept {
    DirectCall scope(Call::Waitall, Reentry::program);
    return real.Waitall(count, requests, statuses);
}

// The library waits for the real ones first, in its own order: only so files make progress, while
// the virtual ones need nobody to look at them. They are issued, and any wait inside the library
// moves them. No null takes the place of a virtual one: MPICH 4.0's Waitall asserts that a
// generalized request beside a null one is complete.
int wait_all_in_turn(int count, MPI_Request requests[], MPI_Status statuses[]) noexcept {
    RealPart reals(count, requests);
    if (!reals.usable()) return MPI_ERR_NO_MEM;
    const int rc = wait_all_by_library(reals.size, reals.handles(), reals.statuses());
    if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS) return rc;
    int next_real = 0;
    bool failed = false;
    for (int i = 0; i < count; ++i) {
        MPI_Status* status = status_at(statuses, i);
        int error = MPI_SUCCESS;
        if (next_real < reals.size && reals.place(next_real) == i) {
            error = reals.give_back(next_real++, rc, requests, status);
        } else {
            error = wait_one(&requests[i], status);
        }
        failed |= error != MPI_SUCCESS;
        if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error;
    }
    return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int wait_all_of(int count, MPI_Request requests[], MPI_Status statuses[]) noexcept {
    int rc = MPI_SUCCESS, taken = 0;
    const bool real_only = !any_virtual(count, requests);
    const bool generalized = engine->generalized_requests.load(std::memory_order_relaxed);
    if (real_only && (generalized || world_has_user_handler()))
        return wait_all_by_library(count, requests, statuses);
    if (generalized) return wait_all_in_turn(count, requests, statuses);
    clear_errors(count, requests, statuses);
    if (real_only && !engine->persistent_requests.load(std::memory_order_relaxed)) {
        taken = take_in_order(count, requests, statuses, &rc);
        if (rc != MPI_ERR_IN_STATUS) return rc;
    }
    WaitAll all(count, requests, statuses, taken);
    if (!all.usable()) return MPI_ERR_NO_MEM;
    if (all.nothing_left()) return rc;
    if (real_only) {
        engine->run_until([&](bool may_call) noexcept {
            return may_call &&
                   all.look([&](int* found, int indices[], MPI_Status found_statuses[]) noexcept {
                       return real.Testsome(count, all.pending(), found, indices, found_statuses);
                   });
        });
        return all.result();
    }
    Mixture mixture(count, all.pending(), true);
    if (!mixture.usable()) return MPI_ERR_NO_MEM;
    if (const int bad = mixture.stale(); bad >= 0) return refuse_stale(&requests[bad]);
    engine->run_until([&](bool may_call) noexcept {
        return all.look([&](int* found, int indices[], MPI_Status found_statuses[]) noexcept {
            int rc = MPI_SUCCESS;
            mixture.find_some(may_call, found, indices, found_statuses, &rc);
            return rc;
        });
    });
    return all.result();
}

int complete_any(bool blocking, int count, MPI_Request requests[], int* index, int* flag,
                 MPI_Status* status) noexcept {
    int rc = MPI_SUCCESS;
    *flag = 0;
    *index = MPI_UNDEFINED;
    if (!any_virtual(count, requests)) {
        run(blocking, [&](bool may_call) noexcept {
            if (!may_call) return false;
            rc = real.Testany(count, requests, index, flag, status);
            return *flag != 0 || rc != MPI_SUCCESS;
        });
        return rc;
    }
    Mixture mixture(count, requests);
    if (!mixture.usable()) return MPI_ERR_NO_MEM;
    if (const int bad = mixture.stale(); bad >= 0) return refuse_stale(&requests[bad]);
    *flag = run(blocking, [&](bool may_call) noexcept {
        return mixture.find_any(may_call, index, status, &rc);
    });
    return rc;
}

int complete_some(bool blocking, int incount, MPI_Request requests[], int* outcount, int indices[],
                  MPI_Status statuses[]) noexcept {
    int rc = MPI_SUCCESS;
    if (!any_virtual(incount, requests)) {
        *outcount = 0;
        run(blocking, [&](bool may_call) noexcept {
            if (!may_call) return false;
            rc = real.Testsome(incount, requests, outcount, indices, statuses);
            return *outcount != 0 || rc != MPI_SUCCESS;
        });
        return rc;
    }
    Mixture mixture(incount, requests);
    if (!mixture.usable()) return MPI_ERR_NO_MEM;
    if (const int bad = mixture.stale(); bad >= 0) return refuse_stale(&requests[bad]);
    *outcount = 0;
    run(blocking, [&](bool may_call) noexcept {
        return mixture.find_some(may_call, outcount, indices, statuses, &rc);
    });
    return rc;
}

// The library's own call: no engine is needed, or the library itself is asking about its own
// requests.
bool hand_on(int count, const MPI_Request requests[]) noexcept {
    if (!engine_runs()) return true;
    if (engine->library_waits_as_well())
        return !engine->jobs.were_posted() || !any_virtual(count, requests);
    return is_reentrant() && !any_virtual(count, requests);
}

}  // namespace

void rest_after_failing_look() noexcept {
    if (engine_runs() && !engine->library_may_wait) engine->give_way_if_crowded();
}

uint32_t looks_by_itself = 1;

namespace {
// Who tests it makes the library poll. Stored once, under the lock; any thread may test it.
std::atomic<MPI_Request> polled{MPI_REQUEST_NULL};
std::mutex polled_mutex;

}  // namespace

void poll_library() noexcept {
    MPI_Request request = polled.load(std::memory_order_relaxed);
    int flag;
    if (request != MPI_REQUEST_NULL)
        real.Test(&request, &flag, MPI_STATUS_IGNORE);
    else  // in a callback of MPI_Finalize
        real.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

void prepare_to_poll() noexcept {
    const std::lock_guard lock(polled_mutex);
    if (polled.load(std::memory_order_relaxed) == MPI_REQUEST_NULL)
        polled.store(start_endless_request(), std::memory_order_relaxed);
}

void stop_polling() noexcept {
    MPI_Request request = polled.exchange(MPI_REQUEST_NULL, std::memory_order_relaxed);
    if (request != MPI_REQUEST_NULL) end_endless_request(&request);
}

void wait_until(bool (*look)(void* context), void* context) noexcept {
    engine->run_until([=](bool may_call) noexcept { return may_call && look(context); });
}

void wait_for_memory_on_ladder(bool (*look)(const void* context), const void* context) noexcept {
    engine->run_until(
        [=](bool may_call) noexcept {
            if (look(context)) return true;
            if (may_call) poll_library();
            return look(context);
        },
        WaitsFor::memory);
}

void make_progress() noexcept {
    if (engine->has_thread() && engine->has_work()) return;  // it may be parked otherwise
    engine->run_until([](bool may_call) noexcept {
        if (may_call) poll_library();
        return true;
    });
}

int wait_one(MPI_Request* request, MPI_Status* status) noexcept {
    if (!request || !status || hand_on(1, request)) return real.Wait(request, status);
    int flag;
    return after_job_errors(complete_one(true, request, &flag, status));
}

int test_one(MPI_Request* request, int* flag, MPI_Status* status) noexcept {
    if (!request || !flag || !status || hand_on(1, request))
        return real.Test(request, flag, status);
    return after_job_errors(complete_one(false, request, flag, status));
}

int wait_any(int count, MPI_Request requests[], int* index, MPI_Status* status) noexcept {
    if (!index || !status || hand_on(count, requests))
        return real.Waitany(count, requests, index, status);
    int flag;
    return after_job_errors(complete_any(true, count, requests, index, &flag, status));
}

int test_any(int count, MPI_Request requests[], int* index, int* flag,
             MPI_Status* status) noexcept {
    if (!index || !flag || !status || hand_on(count, requests))
        return real.Testany(count, requests, index, flag, status);
    return after_job_errors(complete_any(false, count, requests, index, flag, status));
}

int wait_all(int count, MPI_Request requests[], MPI_Status statuses[]) noexcept {
    if (count < 0 || !requests || !statuses || hand_on(count, requests))
        return real.Waitall(count, requests, statuses);
    return after_job_errors(wait_all_of(count, requests, statuses));
}

int test_all(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) noexcept {
    if (!flag || !statuses || hand_on(count, requests))
        return real.Testall(count, requests, flag, statuses);
    return after_job_errors(test_all_of(count, requests, flag, statuses));
}

int wait_some(int incount, MPI_Request requests[], int* outcount, int indices[],
              MPI_Status statuses[]) noexcept {
    if (!outcount || !indices || !statuses || hand_on(incount, requests))
        return real.Waitsome(incount, requests, outcount, indices, statuses);
    return after_job_errors(complete_some(true, incount, requests, outcount, indices, statuses));
}

int test_some(int incount, MPI_Request requests[], int* outcount, int indices[],
              MPI_Status statuses[]) noexcept {
    if (!outcount || !indices || !statuses || hand_on(incount, requests))
        return real.Testsome(incount, requests, outcount, indices, statuses);
    return after_job_errors(complete_some(false, incount, requests, outcount, indices, statuses));
}

}  // namespace vecmpi::offload
