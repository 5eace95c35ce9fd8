// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic behind measure.hpp. No MPI here.
#include "measure.hpp"

#include <algorithm>
#include <bit>

namespace example {

void BitHash::add(std::span<const float> values) {
    for (const float value : values) {
        hash_ = (hash_ ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3;
    }
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void StepClock::add(double step_seconds, const CommunicationTime& communication) {
    step_.push_back(step_seconds);
    communication_.push_back(communication);
}

StepTimes StepClock::medians(std::size_t first) const {
    const auto median_ms = [&](auto seconds_of) {
        std::vector<double> values;
        for (std::size_t i = first; i < steps(); ++i) values.push_back(1e3 * seconds_of(i));
        return median(std::move(values));
    };
    return {median_ms([&](std::size_t i) { return step_[i]; }),
            median_ms([&](std::size_t i) { return communication_[i].posting; }),
            median_ms([&](std::size_t i) { return communication_[i].waiting; }),
            median_ms([&](std::size_t i) { return communication_[i].sum(); })};
}

}  // namespace example
