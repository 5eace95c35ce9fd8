// SPDX-License-Identifier: BSD-3-Clause
// Clock, samples and the agreement of ranks on how often to repeat. Not for anything that needs a
// calendar date.
#pragma once

#include <time.h>

#include <cstddef>
#include <vector>

namespace vecmpi::bench {

inline double clock_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

// Nanoseconds since the machine started; a double holds 100 days of them to better than 1 ns.
inline double now_ns() { return clock_ns(CLOCK_MONOTONIC); }

class Samples {
  public:
    void add(double value) { values_.push_back(value); }
    void reserve(std::size_t count) { values_.reserve(count); }
    std::size_t count() const { return values_.size(); }
    double quantile(double fraction) const;
    double midmean() const;

  private:
    mutable std::vector<double> values_;  // sorted when asked
};

// What two reads of the clock with nothing between them seem to take. Short times have it
// subtracted.
double clock_overhead_ns();

// Rank 0's value, on all ranks of MPI_COMM_WORLD.
double from_rank_0(double value);

// The largest of all ranks' values.
double largest(double value);

// The slowest rank's times, sample by sample; rank 0 has them, the others have none.
Samples slowest(const std::vector<double>& mine, int rank);

// How many repetitions of `each_ns` fill `seconds`, between `least` and `most`; the same on all
// ranks.
long repetitions(double each_ns, double seconds, long least, long most);

}  // namespace vecmpi::bench
