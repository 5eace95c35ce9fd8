// SPDX-License-Identifier: BSD-3-Clause
// The ways of waiting on modelled CPUs: `auto` takes no longer than spinning, nor than yielding.
#include <catch2/catch.hpp>

#include "simulated_cpus.hpp"

using namespace vecmpi;
using namespace vecmpi::base;
using namespace vecmpi::test;

namespace {

int64_t time_of(const SimulatedJob& job, WaitMode mode, Crowd crowd) {
    constexpr int64_t most_us = 60000000;
    const int64_t took_us = SimulatedCpus(job, wait_policy(mode, crowd)).run(most_us);
    REQUIRE(took_us < most_us);
    return took_us;
}

}  // namespace

TEST_CASE("beside threads that compute, sleeping beats spinning and yielding",
          "[base][waiting][simulation]") {
    // CPUs, ranks, computing threads a rank, what each computes; rounds, work and latency of one.
    const SimulatedJob jobs[] = {
        {2, 2, 1, 300000, 200, 50, 500},  {2, 2, 2, 300000, 200, 50, 500},
        {2, 4, 1, 300000, 100, 50, 500},  {4, 2, 4, 300000, 200, 50, 500},
        {2, 2, 1, 300000, 1000, 20, 100}, {2, 2, 2, 300000, 50, 1000, 3000},
        {8, 8, 1, 300000, 200, 100, 50},
    };
    const auto check = [](const SimulatedJob& job, Crowd crowd) {
        const int64_t spin = time_of(job, WaitMode::spin, crowd);
        const int64_t yield = time_of(job, WaitMode::yield, crowd);
        const int64_t automatic = time_of(job, WaitMode::automatic, crowd);
        const int64_t sleep = time_of(job, WaitMode::sleep, crowd);
        CAPTURE(job.cpus, job.ranks, job.computing, job.rounds, job.work_us, job.latency_us);
        CAPTURE(static_cast<int>(crowd), spin, yield, automatic, sleep);
        CHECK(automatic * 100 <= std::min(spin, yield) * 102);
        CHECK(sleep * 100 <= std::min(spin, yield) * 102);
    };
    for (const SimulatedJob& job : jobs) {
        if (job.ranks > job.cpus) {
            check(job, Crowd::of_ranks);
        } else {  // the threads are known, or not
            check(job, Crowd::of_threads);
            check(job, Crowd::none);
        }
    }
}

TEST_CASE("ranks that only crowd each other yield", "[base][waiting][simulation]") {
    for (const auto& [cpus, ranks] : {std::pair{2, 4}, {2, 8}, {1, 2}, {4, 5}}) {
        const SimulatedJob job{cpus, ranks, 0, 0, 2000, 2, 1};
        const int64_t yield = time_of(job, WaitMode::yield, Crowd::of_ranks);
        const int64_t automatic = time_of(job, WaitMode::automatic, Crowd::of_ranks);
        CAPTURE(cpus, ranks, yield, automatic);
        CHECK(automatic * 100 <= yield * 120);  // the look before a yield is 1 us here, not 0.1
        SimulatedJob few = job;
        few.rounds = 10;
        CHECK(time_of(few, WaitMode::automatic, Crowd::of_ranks) <
              time_of(few, WaitMode::spin, Crowd::of_ranks));
    }
}

TEST_CASE("where every thread has its CPU all ways take as long", "[base][waiting][simulation]") {
    const SimulatedJob job{8, 4, 1, 100000, 1000, 20, 100};
    const int64_t spin = time_of(job, WaitMode::spin, Crowd::none);
    CHECK(time_of(job, WaitMode::automatic, Crowd::none) == spin);
    CHECK(time_of(job, WaitMode::yield, Crowd::none) == spin);
}

TEST_CASE("where nothing wakes a sleeper, auto is yielding", "[base][waiting][simulation]") {
    SimulatedJob job{2, 2, 2, 300000, 200, 50, 500};
    job.can_be_woken = false;
    const int64_t yield = time_of(job, WaitMode::yield, Crowd::none);
    const int64_t automatic = time_of(job, WaitMode::automatic, Crowd::none);
    CAPTURE(yield, automatic);
    CHECK(automatic * 100 <= yield * 105);
}
