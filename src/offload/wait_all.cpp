// SPDX-License-Identifier: BSD-3-Clause
// MPI_Waitall on virtual, real and null requests.
#include "mixed_requests.hpp"

namespace vecmpi::offload {

namespace {

// What MPI_Waitall has so far. Each request is taken as it completes. Where one fails the others
// are waited for, so that none is left pending.
class WaitAll {
  public:
    // taken: so many were looked at by Testall, which found a failure. Those that are null have
    // their statuses.
    WaitAll(int count, MPI_Request requests[], MPI_Status statuses[], int taken) noexcept
        : count_(count),
          statuses_(statuses),
          failed_(taken != 0),
          requests_(count, requests, true),
          places_(count),
          found_(count) {
        if (failed_) no_errors(statuses, taken, count);
        for (int i = 0; i < count; ++i) {
            left_ += requests[i] != MPI_REQUEST_NULL;
            if (i >= taken) set_empty(status_at(statuses, i));
        }
    }
    int check() const noexcept {
        return places_.data() && found_.data() ? requests_.check() : int{MPI_ERR_NO_MEM};
    }
    bool nothing_left() const noexcept { return left_ == 0; }
    // True when nothing is left that is active, or the library has refused.
    bool look(bool may_call) noexcept {
        int found = 0, rc = MPI_SUCCESS;
        requests_.find_some(may_call, &found, places_.data(), found_.data(), &rc);
        if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS) refused_ = rc;
        if (refused_ != MPI_SUCCESS || found == MPI_UNDEFINED) return true;
        for (int i = 0; i < found; ++i)
            take(places_[i], found_[i], rc == MPI_SUCCESS ? MPI_SUCCESS : found_[i].MPI_ERROR);
        left_ -= found;
        return nothing_left();
    }
    int result() const noexcept {
        if (refused_ != MPI_SUCCESS) return refused_;
        return failed_ ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
    }

  private:
    void take(int place, const MPI_Status& status, int error) noexcept {
        if (error != MPI_SUCCESS && !failed_) no_errors(statuses_, 0, count_);
        failed_ |= error != MPI_SUCCESS;
        copy_status(status, status_at(statuses_, place));
        set_error(statuses_, place, error);
    }

    int count_;
    MPI_Status* statuses_;
    int left_ = 0;
    bool failed_;
    int refused_ = MPI_SUCCESS;
    MixedRequests requests_;
    SmallArray<int> places_;
    SmallArray<MPI_Status> found_;
};

// So many requests one look of a Waitall asks for, after a first look that found some open.
// Messages mostly complete in order, and a look at 64 pending ones costs as much as three messages.
constexpr int waitall_part = 16;
// The first look, and those after it while all are complete. MPICH 4.0's Testall takes 64 at a
// time (MPIR_CVAR_REQUEST_BATCH_SIZE; a smaller one is not served). Without statuses it ends all as
// suits the last of them: sends and receives there, and a collective before them aborts.
constexpr int library_batch = 64;
static_assert(waitall_part <= library_batch);

// Takes requests from the left by Testall, with the library's own statuses. Returns how many it has
// looked at for the last time: all, or fewer where one failed or the library refused (*rc).
int take_in_order(int count, MPI_Request requests[], MPI_Status statuses[], int* rc) noexcept {
    int done = 0, size = library_batch;
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

// As MPICH's Waitall leaves them. The standard asks for it only with MPI_ERR_IN_STATUS, but
// programs look.
void clear_errors(int count, const MPI_Request requests[], MPI_Status statuses[]) noexcept {
    for (int i = 0; i < count; ++i)
        if (requests[i] != MPI_REQUEST_NULL) set_error(statuses, i, MPI_SUCCESS);
}

// The library calls an error handler function of the program for each error that it sees. MPICH's
// Waitall sees one, many looks would see several.
bool world_has_user_handler() noexcept {
    return agreement().valid && comm_traits(MPI_COMM_WORLD).handler == CommTraits::Handler::user;
}

int wait_all_by_library(int count, MPI_Request requests[], MPI_Status statuses[]) noexcept {
    DirectCall scope(Call::Waitall, Reentry::program);
    return real.Waitall(count, requests, statuses);
}

// The real ones first, by the library's own Waitall: only in its order do files make progress. The
// virtual ones are issued, and any wait inside the library moves them. The array that the library
// gets has no nulls: MPICH 4.0's Waitall asserts that a generalized request next to a null one is
// complete.
int wait_for_reals_first(int count, MPI_Request requests[], MPI_Status statuses[]) noexcept {
    RealRequests reals(count, requests);
    if (!reals.usable()) return MPI_ERR_NO_MEM;
    const int rc = wait_all_by_library(reals.size, reals.handles(), reals.statuses());
    if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS) return rc;
    int next_real = 0;
    clear_errors(count, requests, statuses);
    ErrorCollector errors(statuses);
    for (int i = 0; i < count; ++i) {
        MPI_Status* status = status_at(statuses, i);
        const bool is_real = next_real < reals.size && reals.place(next_real) == i;
        errors.add(i, is_real ? reals.give_back(next_real++, rc, requests, status)
                              : wait_one(&requests[i], status));
    }
    return errors.result();
}

int wait_all_of(int count, MPI_Request requests[], MPI_Status statuses[]) noexcept {
    int rc = MPI_SUCCESS, taken = 0;
    const bool real_only = !any_virtual(count, requests);
    const bool generalized = engine->has_seen(RequestKind::generalized);
    if (real_only && (generalized || world_has_user_handler()))
        return wait_all_by_library(count, requests, statuses);
    if (generalized) return wait_for_reals_first(count, requests, statuses);
    clear_errors(count, requests, statuses);
    if (real_only && !engine->has_seen(RequestKind::persistent)) {
        taken = take_in_order(count, requests, statuses, &rc);
        if (rc != MPI_ERR_IN_STATUS) return rc;
    }
    WaitAll all(count, requests, statuses, taken);
    if (const int refused = all.check(); refused != MPI_SUCCESS) return refused;
    if (all.nothing_left()) return rc;
    engine->wait_until([&](bool may_call) noexcept { return all.look(may_call); });
    return all.result();
}

}  // namespace

int wait_all(int count, MPI_Request requests[], MPI_Status statuses[]) noexcept {
    if (count < 0 || !requests || is_missing(statuses) || hand_on(count, requests))
        return real.Waitall(count, requests, statuses);
    return after_job_errors(wait_all_of(count, requests, statuses));
}

}  // namespace vecmpi::offload
