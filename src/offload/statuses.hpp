// SPDX-License-Identifier: BSD-3-Clause
// Statuses of completed requests and their errors (MPI 4.0, 3.7.3 and 3.7.5).
#pragma once
#include "offload/api.hpp"

namespace vecmpi::offload {

// The library must refuse it. In the standard ABI a null pointer is MPI_STATUS_IGNORE.
inline bool is_missing(const MPI_Status* status) noexcept {
    return status == nullptr && status != MPI_STATUS_IGNORE;
}

inline MPI_Status* status_at(MPI_Status statuses[], int i) noexcept {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

// The library's own status of a null or inactive request, MPI_ERROR left alone.
inline void set_empty(MPI_Status* status) noexcept {
    if (status == MPI_STATUS_IGNORE) return;
    MPI_Request none = MPI_REQUEST_NULL;
    int flag;
    real.Test(&none, &flag, status);
}

// MPI_ERROR left alone: only a call that returns MPI_ERR_IN_STATUS may change it.
inline void copy_status(const MPI_Status& from, MPI_Status* to) noexcept {
    if (to == MPI_STATUS_IGNORE) return;
    const int kept = to->MPI_ERROR;
    *to = from;
    to->MPI_ERROR = kept;
}

inline void set_error(MPI_Status statuses[], int i, int error) noexcept {
    if (statuses != MPI_STATUSES_IGNORE) statuses[i].MPI_ERROR = error;
}

// Where one request failed, the statuses of the others say that they did not.
inline void no_errors(MPI_Status statuses[], int from, int to) noexcept {
    for (int i = from; i < to; ++i) set_error(statuses, i, MPI_SUCCESS);
}

// What a completion of several requests returns. Sets MPI_ERROR of their statuses, but only where
// one of them failed.
class ErrorCollector {
  public:
    explicit ErrorCollector(MPI_Status statuses[]) noexcept : statuses_(statuses) {}
    void add(int place, int error) noexcept {  // places in order
        if (error != MPI_SUCCESS && !failed_) no_errors(statuses_, 0, place);
        failed_ |= error != MPI_SUCCESS;
        if (failed_) set_error(statuses_, place, error);
    }
    int result() const noexcept { return failed_ ? MPI_ERR_IN_STATUS : MPI_SUCCESS; }

  private:
    MPI_Status* statuses_;
    bool failed_ = false;
};

}  // namespace vecmpi::offload
