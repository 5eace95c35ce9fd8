// SPDX-License-Identifier: BSD-3-Clause
// What the demo program reports at its end: medians of times, and a hash of results that differs
// when one bit does. No MPI here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradient_exchange.hpp"

namespace example {

// FNV-1a, 64 bits, with the bits of a float as its unit instead of a byte: each step is a
// bijection, so one wrong bit among any number of floats always shows. 1 ms for a million floats.
class BitHash {
  public:
    void add(std::span<const float> values);
    std::uint64_t value() const { return hash_; }

  private:
    std::uint64_t hash_ = 0xcbf29ce484222325;
};

// The upper of the two middle values where their number is even; 0 without values.
double median(std::vector<double> values);

// Medians over the steps, in milliseconds.
struct StepTimes {
    double step = 0;
    double posting = 0;
    double waiting = 0;
    double communication = 0;  // both together
};

class StepClock {
  public:
    void add(double step_seconds, const CommunicationTime& communication);
    // Of the steps from number first on.
    StepTimes medians(std::size_t first) const;
    std::size_t steps() const { return step_.size(); }

  private:
    std::vector<double> step_;
    std::vector<CommunicationTime> communication_;
};

}  // namespace example
