// SPDX-License-Identifier: BSD-3-Clause
// Several requests of which some are virtual: one look at them, and what it reports. Does not wait.
#pragma once

#include <memory>
#include <new>

#include "completion.hpp"

namespace vecmpi::offload {

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

// A stale virtual handle: the library gives its own error for that one.
int refuse_stale(MPI_Request* request) noexcept;

}  // namespace vecmpi::offload
