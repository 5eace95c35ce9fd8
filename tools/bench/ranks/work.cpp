// SPDX-License-Identifier: BSD-3-Clause
// The fixed computation and its calibration. Not a benchmark of the CPU.
#include "work.hpp"

#include <algorithm>

#include "timing.hpp"

namespace vecmpi::bench {
namespace {

constexpr std::uint64_t trial_steps = 1'000'000;  // about 1 ms

// What one step takes, measured once per process.
double step_ns() {
    static const double fastest = [] {
        double best = 1e18;
        for (int trial = 0; trial < 20; trial++) {
            const double start = now_ns();
            work(trial_steps);
            best = std::min(best, now_ns() - start);
        }
        return best / static_cast<double>(trial_steps);
    }();
    return fastest;
}

}  // namespace

void work(std::uint64_t steps) {
    static thread_local volatile std::uint64_t result;  // keeps the loop from being dropped
    std::uint64_t x = result;
    for (std::uint64_t i = 0; i < steps; i++) x = x * 6364136223846793005U + 1442695040888963407U;
    result = x;
}

std::uint64_t steps_for(double ns) {
    return ns <= 0 ? 0 : static_cast<std::uint64_t>(ns / step_ns());
}

}  // namespace vecmpi::bench
