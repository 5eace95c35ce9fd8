// SPDX-License-Identifier: BSD-3-Clause
// How the elements of a vector are divided among ranks.
#pragma once

#include <mpi.h>

#include <algorithm>

#include "kept_arrays.hpp"
#include "offload/api/arguments.hpp"

namespace vecmpi::pipeline {

// Elements of each rank: an array argument of a call, which is there, or as many for all.
class RankCounts {
  public:
    explicit RankCounts(offload::RankArray counts) noexcept : counts_(counts) {}
    explicit RankCounts(MPI_Count each) noexcept
        : counts_(static_cast<const int*>(nullptr)), each_(each) {}

    MPI_Count operator[](int rank) const noexcept {
        return counts_.missing() ? each_ : counts_[rank];
    }
    // Of the first so many ranks.
    MPI_Count total(int ranks) const noexcept {
        MPI_Count sum = 0;
        for (int r = 0; r < ranks; ++r) sum += (*this)[r];
        return sum;
    }
    MPI_Count largest(int ranks) const noexcept {
        MPI_Count most = 0;
        for (int r = 0; r < ranks; ++r) most = std::max(most, (*this)[r]);
        return most;
    }
    // The library refuses a negative one.
    bool has_negative(int ranks) const noexcept {
        for (int r = 0; r < ranks; ++r)
            if ((*this)[r] < 0) return true;
        return false;
    }
    void keep(KeptArrays& arrays, int ranks) { counts_ = arrays.copy(counts_, ranks); }

  private:
    offload::RankArray counts_;
    MPI_Count each_ = 0;
};

}  // namespace vecmpi::pipeline
