// SPDX-License-Identifier: BSD-3-Clause
// Clock, samples and the agreement of ranks on how often to repeat. Not for anything that needs a
// calendar date.
#pragma once

#include <time.h>

#include <algorithm>
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

// Times batches of `call`, each long enough that the clock's step and overhead vanish, until
// `seconds` are used, but at least `fewest` batches. A sample is the time of one call. The caller
// warms up.
template <typename Call>
Samples sample_batches(const Call& call, double seconds, long fewest) {
    constexpr double batch_ns = 20e3;
    constexpr long most_samples = 2000;
    const auto batch_of = [&](long calls) {
        const double start = now_ns();
        for (long i = 0; i < calls; i++) call();
        return (now_ns() - start) / static_cast<double>(calls);
    };
    long calls = 1;
    double each_ns = batch_of(1);
    for (; each_ns * static_cast<double>(calls) < batch_ns; each_ns = batch_of(calls)) calls *= 2;
    const double batches = 1e9 * seconds / (each_ns * static_cast<double>(calls));
    const long count = std::clamp(static_cast<long>(batches), fewest, most_samples);
    Samples samples;
    for (long i = 0; i < count; i++) samples.add(batch_of(calls));
    return samples;
}

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
