// SPDX-License-Identifier: BSD-3-Clause
// Several requests, some of them virtual: one look at them, and what it reports. Does not wait.
#pragma once

#include "completion.hpp"
#include "small_array.hpp"

namespace vecmpi::offload {

// The real requests among several, in order, with their places in the program's array.
class RealRequests {
  public:
    RealRequests(int count, const MPI_Request requests[]) noexcept
        : places_(count), handles_(count), statuses_(count) {
        if (!usable()) return;
        for (int i = 0; i < count; ++i)
            if (!is_virtual(requests[i]) && requests[i] != MPI_REQUEST_NULL) {
                places_[size] = i;
                handles_[size++] = requests[i];
            }
    }
    bool usable() const noexcept { return places_.data() && handles_.data() && statuses_.data(); }
    int place(int i) const noexcept { return places_[i]; }
    MPI_Request* handles() const noexcept { return handles_.data(); }
    MPI_Status* statuses() const noexcept { return statuses_.data(); }
    int size = 0;

    // Gives the program the handle and status of the i-th one, after a completion that returned rc.
    // Returns its error.
    int give_back(int i, int rc, MPI_Request requests[], MPI_Status* status) const noexcept {
        const MPI_Status& found = statuses_[i];
        const int error = rc == MPI_SUCCESS ? MPI_SUCCESS : found.MPI_ERROR;
        requests[place(i)] = handles_[i];
        if (error != MPI_ERR_PENDING) copy_status(found, status);
        return error;
    }

  private:
    SmallArray<int> places_;
    SmallArray<MPI_Request> handles_;
    SmallArray<MPI_Status> statuses_;
};

class MixedRequests {
  public:
    // once: a real request that was found is not looked at again. (Testsome in MPICH 4.0 reports a
    // complete persistent collective again and again.)
    MixedRequests(int count, MPI_Request requests[], bool once = false) noexcept
        : count_(count),
          requests_(requests),
          reals_(count, requests),
          any_virtual_(any_virtual(count, requests)),
          once_(once) {}

    // MPI_SUCCESS, or the error that the call returns: no memory, or the library's own error for a
    // stale virtual handle. First of all.
    int check() const noexcept;

    // Each is one look, and true when there is something to report. *rc: what the call returns.
    // Testall; then report_all() returns it. all_complete(): the flag of MPI_Testall.
    bool look_at_all(bool may_call, int* rc) noexcept;
    int report_all(MPI_Status statuses[]) noexcept;
    bool all_complete() const noexcept { return all_complete_; }
    bool find_any(bool may_call, int* index, MPI_Status* status, int* rc) noexcept;
    bool find_some(bool may_call, int* outcount, int indices[], MPI_Status statuses[],
                   int* rc) noexcept;

  private:
    bool test_reals(bool take, int* flag) noexcept;
    int report_real(int index, MPI_Status* status) noexcept;
    bool names_no_failure(int found) const noexcept;
    int find_reals(int found, int indices[], MPI_Status statuses[],
                   ErrorCollector& errors) noexcept;
    bool virtuals_inactive() const noexcept;
    Slot* slot(int i) const noexcept {
        return is_virtual(requests_[i]) ? engine->pool.find(requests_[i]) : nullptr;
    }

    int count_;
    MPI_Request* requests_;
    RealRequests reals_;
    bool any_virtual_, once_;
    bool all_complete_ = false;
    bool reals_taken_ = false;
    int real_rc_ = MPI_SUCCESS;
};

}  // namespace vecmpi::offload
