// SPDX-License-Identifier: BSD-3-Clause
// One look at requests of which some are virtual.
#include "mixed_requests.hpp"

namespace vecmpi::offload {

int MixedRequests::check() const noexcept {
    if (!reals_.usable()) return MPI_ERR_NO_MEM;
    int flag;
    for (int i = 0; i < count_; ++i)
        if (is_virtual(requests_[i]) && !slot(i))
            return real.Test(&requests_[i], &flag, MPI_STATUS_IGNORE);
    return MPI_SUCCESS;
}

bool MixedRequests::virtuals_inactive() const noexcept {
    for (int i = 0; i < count_; ++i)
        if (is_virtual(requests_[i]) && readiness(slot(i)) != Readiness::inactive) return false;
    return true;
}

// Testall over the real ones. take: they are completed if all of them are complete. Else, where a
// virtual one is pending, a request that is never complete keeps the library from completing any.
// It is asked all the same: it polls files only when it is asked about them, and an error is due at
// once.
bool MixedRequests::test_reals(bool take, int* flag) noexcept {
    int size = reals_.size;
    if (!take) {
        reals_.handles()[size] = pending_for_ever();
        if (reals_.handles()[size] == MPI_REQUEST_NULL) return false;
        ++size;  // there is room: some request is virtual
    }
    real_rc_ = real.Testall(size, reals_.handles(), flag, reals_.statuses());
    return true;
}

bool MixedRequests::look_at_all(bool may_call, int* rc) noexcept {
    bool pending = false, failed = false;
    for (int i = 0; i < count_; ++i) {
        if (!is_virtual(requests_[i])) continue;
        Slot* looked_at = slot(i);
        const Readiness found = ask_for(looked_at, may_call);
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

// Where one has failed, the statuses of the pending ones say that they are (MPI 4.0, 3.7.5).
int MixedRequests::report_all(MPI_Status statuses[]) noexcept {
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

int MixedRequests::report_real(int index, MPI_Status* status) noexcept {
    if (!reals_taken_) return MPI_ERR_PENDING;
    return reals_.give_back(index, real_rc_, requests_, status);
}

bool MixedRequests::find_any(bool may_call, int* index, MPI_Status* status, int* rc) noexcept {
    for (int i = 0; i < count_; ++i)
        if (Slot* candidate = slot(i);
            candidate && ask_for(candidate, may_call) == Readiness::complete) {
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
    if (found == MPI_UNDEFINED) {
        if (*rc == MPI_SUCCESS) set_empty(status);
        return *rc != MPI_SUCCESS || virtuals_inactive();
    }
    *index = reals_.place(found);
    requests_[*index] = reals_.handles()[found];
    return true;
}

// MPICH 4.3's Testsome does not say which persistent receive has failed, nor how.
bool MixedRequests::names_no_failure(int found) const noexcept {
    return real_rc_ == MPI_ERR_IN_STATUS &&
           std::all_of(reals_.statuses(), reals_.statuses() + found,
                       [](const MPI_Status& one) { return one.MPI_ERROR == MPI_SUCCESS; });
}

// Testsome over the real ones; results from place `found` on. Returns how many there are, or
// MPI_UNDEFINED where none is active.
int MixedRequests::find_reals(int found, int indices[], MPI_Status statuses[],
                              ErrorCollector& errors) noexcept {
    int more = 0;
    int* places = indices + found;
    real_rc_ = real.Testsome(reals_.size, reals_.handles(), &more, places, reals_.statuses());
    const bool names_none = names_no_failure(std::max(more, 0));
    for (int i = 0; more != MPI_UNDEFINED && i < more; ++i, ++found) {
        const MPI_Status& real_status = reals_.statuses()[i];
        const int place = reals_.place(places[i]);
        requests_[place] = reals_.handles()[places[i]];
        if (once_) reals_.handles()[places[i]] = MPI_REQUEST_NULL;
        places[i] = place;
        copy_status(real_status, status_at(statuses, found));
        const bool is_persistent = requests_[place] != MPI_REQUEST_NULL;
        errors.add(found, real_rc_ == MPI_SUCCESS       ? int{MPI_SUCCESS}
                          : names_none && is_persistent ? int{MPI_ERR_UNKNOWN}
                                                        : real_status.MPI_ERROR);
    }
    return more;
}

bool MixedRequests::find_some(bool may_call, int* outcount, int indices[], MPI_Status statuses[],
                              int* rc) noexcept {
    ErrorCollector errors(statuses);
    int found = 0;
    for (int i = 0; any_virtual_ && i < count_; ++i)
        if (Slot* candidate = slot(i);
            candidate && ask_for(candidate, may_call) == Readiness::complete) {
            indices[found] = i;
            errors.add(found, consume(candidate, &requests_[i], status_at(statuses, found)));
            ++found;
        }
    bool reals_inactive = reals_.size == 0;
    if (may_call && !reals_inactive) {
        const int more = find_reals(found, indices, statuses, errors);
        reals_inactive = more == MPI_UNDEFINED;
        if (!reals_inactive) found += more;
    }
    *rc = errors.result();
    const bool refused = real_rc_ != MPI_SUCCESS && real_rc_ != MPI_ERR_IN_STATUS;
    if (refused && *rc == MPI_SUCCESS) *rc = real_rc_;
    const bool none_left = found == 0 && !refused && reals_inactive && virtuals_inactive();
    *outcount = none_left ? MPI_UNDEFINED : found;
    return found > 0 || none_left || real_rc_ != MPI_SUCCESS;
}

}  // namespace vecmpi::offload
