// SPDX-License-Identifier: BSD-3-Clause
// A call of the program as the report counts it: time, path, bytes. Only timed() of entry.hpp uses
// it, which is bound in place of enter() where VECMPI_REPORT asks. Not a door: src/intercept only.
#pragma once

#include "offload/api.hpp"

namespace vecmpi::intercept {

// Bytes are what this rank gives: count times size of the send buffer, or of the only buffer, on
// every path the same. Calls that the library makes itself belong to the program's.
class TimedCall : public CallTimer {
  public:
    explicit TimedCall(Call call, Path path = Path::library) noexcept
        : CallTimer(static_cast<size_t>(call), path,
                    !offload::is_reentrant() && offload::engine_runs()) {}

    void moves(MPI_Count count, MPI_Datatype type) noexcept {
        if (counts() && count > 0) add(count, type);
    }
    // As much for each rank of the communicator. Between two groups this and the next two count
    // nothing.
    void moves_for_each(MPI_Count count, MPI_Datatype type, MPI_Comm comm) noexcept;
    void moves_all(offload::RankArray counts_of_ranks, MPI_Datatype type, MPI_Comm comm) noexcept;
    // One of the counts: this rank's.
    void moves_own(offload::RankArray counts_of_ranks, MPI_Datatype type, MPI_Comm comm) noexcept;

  private:
    void add(MPI_Count count, MPI_Datatype type) noexcept;
};

}  // namespace vecmpi::intercept
