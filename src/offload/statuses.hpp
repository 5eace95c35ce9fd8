// SPDX-License-Identifier: BSD-3-Clause
// Statuses of calls that look at several requests: their places, and their errors (MPI 4.0, 3.7.5).
#pragma once
#include "offload/api.hpp"

namespace vecmpi::offload {

inline MPI_Status* status_at(MPI_Status statuses[], int i) noexcept {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

// What a multiple completion returns, and MPI_ERROR of its statuses: set only where one of them
// failed.
class ErrorCollector {
  public:
    explicit ErrorCollector(MPI_Status statuses[]) noexcept : statuses_(statuses) {}
    void add(int place, int error) noexcept {
        if (error == MPI_SUCCESS) {
            if (failed_ && statuses_ != MPI_STATUSES_IGNORE)
                statuses_[place].MPI_ERROR = MPI_SUCCESS;
            return;
        }
        if (!failed_ && statuses_ != MPI_STATUSES_IGNORE)
            for (int i = 0; i < place; ++i) statuses_[i].MPI_ERROR = MPI_SUCCESS;
        failed_ = true;
        if (statuses_ != MPI_STATUSES_IGNORE) statuses_[place].MPI_ERROR = error;
    }
    int result() const noexcept { return failed_ ? MPI_ERR_IN_STATUS : MPI_SUCCESS; }

  private:
    MPI_Status* statuses_;
    bool failed_ = false;
};

}  // namespace vecmpi::offload
