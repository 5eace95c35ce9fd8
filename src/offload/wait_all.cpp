// SPDX-License-Identifier: BSD-3-Clause
// MPI_Waitall on virtual, real and null requests.
#include <memory>
#include <new>

#include "mixture.hpp"
#include "statuses.hpp"

namespace vecmpi::offload {

namespace {

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
    engine->wait_until([&](bool may_call) noexcept {
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
    const bool generalized = engine->has_seen(RequestKind::generalized);
    if (real_only && (generalized || world_has_user_handler()))
        return wait_all_by_library(count, requests, statuses);
    if (generalized) return wait_all_in_turn(count, requests, statuses);
    clear_errors(count, requests, statuses);
    if (real_only && !engine->has_seen(RequestKind::persistent)) {
        taken = take_in_order(count, requests, statuses, &rc);
        if (rc != MPI_ERR_IN_STATUS) return rc;
    }
    WaitAll all(count, requests, statuses, taken);
    if (!all.usable()) return MPI_ERR_NO_MEM;
    if (all.nothing_left()) return rc;
    if (real_only) {
        engine->wait_until([&](bool may_call) noexcept {
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
    engine->wait_until([&](bool may_call) noexcept {
        return all.look([&](int* found, int indices[], MPI_Status found_statuses[]) noexcept {
            int rc = MPI_SUCCESS;
            mixture.find_some(may_call, found, indices, found_statuses, &rc);
            return rc;
        });
    });
    return all.result();
}

}  // namespace

int wait_all(int count, MPI_Request requests[], MPI_Status statuses[]) noexcept {
    if (count < 0 || !requests || !statuses || hand_on(count, requests))
        return real.Waitall(count, requests, statuses);
    return after_job_errors(wait_all_of(count, requests, statuses));
}

}  // namespace vecmpi::offload
