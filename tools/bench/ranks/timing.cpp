// SPDX-License-Identifier: BSD-3-Clause
// Samples, clock overhead and agreement of ranks. Calls MPI, so it must stay out of timed regions.
#include "timing.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace vecmpi::bench {

double Samples::quantile(double fraction) const {
    if (values_.empty()) return 0;
    std::sort(values_.begin(), values_.end());
    const double position = fraction * static_cast<double>(values_.size() - 1);
    return values_[static_cast<std::size_t>(std::lround(position))];
}

double Samples::midmean() const {
    if (values_.empty()) return 0;
    std::sort(values_.begin(), values_.end());
    const auto quarter = static_cast<std::ptrdiff_t>(values_.size() / 4);
    const auto first = values_.begin() + quarter, last = values_.end() - quarter;
    return std::accumulate(first, last, 0.0) / static_cast<double>(last - first);
}

double clock_overhead_ns() {
    Samples samples;
    for (int i = 0; i < 10000; i++) {
        const double start = now_ns();
        samples.add(now_ns() - start);
    }
    return samples.midmean();
}

double from_rank_0(double value) {
    MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return value;
}

double largest(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
}

Samples slowest(const std::vector<double>& mine, int rank) {
    std::vector<double> all(mine.size());
    MPI_Reduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, 0,
               MPI_COMM_WORLD);
    Samples samples;
    for (const double value : all)
        if (rank == 0) samples.add(value);
    return samples;
}

long repetitions(double each_ns, double seconds, long least, long most) {
    const double fit = 1e9 * seconds / std::max(each_ns, 1.0);
    const double count = std::clamp(fit, static_cast<double>(least), static_cast<double>(most));
    return std::lround(from_rank_0(count));
}

}  // namespace vecmpi::bench
