// SPDX-License-Identifier: BSD-3-Clause
// Waiting: what each mode climbs to, and parking on a word. Measures no time but that something
// slept at all.
#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/api.hpp"

using namespace vecmpi;
using namespace vecmpi::base;

namespace {

// Voluntary context switches of this thread: a sleep makes one, a spin or a pause none.
long times_given_up(const WaitPolicy& policy, int steps) {
    rusage before{}, after{};
    Ladder ladder(policy);
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < steps; ++i) ladder.rest();
    getrusage(RUSAGE_THREAD, &after);
    return after.ru_nvcsw - before.ru_nvcsw;
}

}  // namespace

TEST_CASE("looks in vain give the CPU away ever more seldom, until one succeeds",
          "[base][waiting]") {
    FailingLooks looks;
    const auto until_next = [&]() {
        int number = 1;
        while (!looks.one_more()) ++number;
        return number;
    };
    for (const int gap : {1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256}) CHECK(until_next() == gap);
    CHECK_FALSE(looks.one_more());
    looks.end();
    CHECK(until_next() == 1);
}

TEST_CASE("wait_policy", "[base][waiting]") {
    for (Crowd crowd : {Crowd::none, Crowd::of_threads, Crowd::of_ranks}) {
        WaitPolicy spin = wait_policy(WaitMode::spin, crowd);
        CHECK(spin.pauses == UINT32_MAX);
        WaitPolicy yield = wait_policy(WaitMode::yield, crowd);
        CHECK(yield.spins == 0);
        CHECK(yield.pauses == 0);
        CHECK(yield.yields == UINT32_MAX);
        WaitPolicy sleep = wait_policy(WaitMode::sleep, crowd);
        CHECK(sleep.yields < 100);
        CHECK(sleep.sleep_us > 0);
        CHECK(sleep.max_sleep_us == 1000);
        CHECK(sleep.sleeps == Sleeps::always);
        CHECK(spin.sleeps == Sleeps::never);
        CHECK(yield.sleeps == Sleeps::never);
        CHECK(wait_policy(WaitMode::automatic, crowd).sleeps == Sleeps::beside_work);
    }
    WaitPolicy roomy = wait_policy(WaitMode::automatic, Crowd::none);
    CHECK(roomy.spins >= 1000);
    CHECK(roomy.pauses >= 1000);
    CHECK(roomy.yields == UINT32_MAX);
    CHECK(roomy.long_yields == 1);
    for (Crowd crowd : {Crowd::of_threads, Crowd::of_ranks}) {
        WaitPolicy crowded = wait_policy(WaitMode::automatic, crowd);
        CHECK(crowded.spins <= 2);
        CHECK(crowded.pauses == 0);
        CHECK(crowded.yields == UINT32_MAX);
        CHECK(crowded.long_yields == (crowd == Crowd::of_ranks ? 4 : 1));
    }
}

TEST_CASE("Ladder sleeps only where the policy says so, and starts again after reset",
          "[base][waiting]") {
    WaitPolicy sleepy{.spins = 3, .pauses = 2, .yields = 0, .sleep_us = 1, .max_sleep_us = 4};
    CHECK(times_given_up(sleepy, 5) == 0);
    CHECK(times_given_up(sleepy, 15) >= 10);
    CHECK(times_given_up(wait_policy(WaitMode::spin, Crowd::of_ranks), 10000) == 0);
    WaitPolicy nothing;  // no step at all: yields rather than burning the CPU or stopping
    CHECK(times_given_up(nothing, 10) == 0);

    rusage before{}, after{};
    Ladder ladder(sleepy);
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < 20; ++i) {
        ladder.rest();
        ladder.rest();
        ladder.reset();
    }
    getrusage(RUSAGE_THREAD, &after);
    CHECK(after.ru_nvcsw == before.ru_nvcsw);
}

TEST_CASE("Ladder: sleeps double up to the longest and no further", "[base][waiting]") {
    WaitPolicy sleepy{.spins = 0, .pauses = 0, .yields = 1, .sleep_us = 50, .max_sleep_us = 200};
    Ladder ladder(sleepy);
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1 + 5; ++i) ladder.rest();  // a yield, then 50, 100, 200, 200, 200 us
    auto spent = std::chrono::steady_clock::now() - start;
    CHECK(spent >= std::chrono::microseconds(750));
}

TEST_CASE("Ladder: a yield that nobody takes up begins it anew", "[base][waiting]") {
    const WaitPolicy policy{.spins = 3, .yields = UINT32_MAX};
    Ladder plain(policy), anew(policy);
    for (int i = 0; i < 3; ++i) REQUIRE((plain.spins() && anew.spins()));
    bool began_anew = false;
    for (int i = 0; i < 100000 && !began_anew; ++i) {  // others may run for a while
        plain.rest();
        anew.rest_if_wanted();
        began_anew = anew.spins();
    }
    CHECK(began_anew);
    CHECK_FALSE(plain.spins());
    const WaitPolicy at_once{.yields = UINT32_MAX};
    Ladder yields(at_once);
    for (int i = 0; i < 100; ++i) yields.rest_if_wanted();
    CHECK_FALSE(yields.spins());
}

TEST_CASE("Neighbours: who takes a time slice computes, who gives the CPU back soon waits as well",
          "[base][waiting]") {
    Neighbours others;
    CHECK_FALSE(others.compute(0));
    others.yielded(3, 1000, 1);
    CHECK_FALSE(others.compute(1000));
    uint64_t now_us = 10000;
    for (uint64_t times : {2, 4, 8, 16, 32, 64, 64}) {
        others.yielded(3000, now_us, 1);
        CHECK(others.compute(now_us));
        CHECK(others.compute(now_us + 3000 * times - 1));
        CHECK_FALSE(others.compute(now_us + 3000 * times));
        now_us += 3000 * times;
    }
    others.yielded(2, now_us, 1);
    CHECK_FALSE(others.compute(now_us));
    others.yielded(3000, now_us, 1);  // again from the start
    CHECK_FALSE(others.compute(now_us + 6000));
}

TEST_CASE("Neighbours: ranks that crowd each other compute for a while, then wait",
          "[base][waiting]") {
    constexpr uint32_t long_yields = 4;
    REQUIRE(wait_policy(WaitMode::automatic, Crowd::of_ranks).long_yields == long_yields);
    Neighbours others;
    uint64_t now_us = 10000;
    for (int step = 0; step < 100; ++step) {  // three slices of work, then it waits
        for (int slice = 0; slice < 3; ++slice) {
            others.yielded(3000, now_us += 3000, long_yields);
            CHECK_FALSE(others.compute(now_us));
        }
        others.yielded(3, now_us += 3, long_yields);
    }
    for (int slice = 0; slice < 3; ++slice) others.yielded(3000, now_us += 3000, long_yields);
    for (uint64_t times : {2, 4, 8, 16, 32, 64, 64}) {
        others.yielded(3000, now_us, long_yields);
        CHECK(others.compute(now_us + 3000 * times - 1));
        CHECK_FALSE(others.compute(now_us + 3000 * times));
        now_us += 3000 * times;
    }
}

TEST_CASE("next_rest: what is seen decides", "[base][waiting]") {
    constexpr uint32_t first = 0, later = 100000;
    struct Case {
        const char* what;
        WaitMode mode;
        Crowd crowd;
        uint32_t steps;
        bool can_be_woken, others_compute;
        Rest rest;
    };
    using enum WaitMode;
    using enum Crowd;
    const Case cases[] = {
        {"a CPU of its own, short wait", automatic, none, first, true, true, Rest::look},
        {"the same, somewhat longer", automatic, none, 200, true, true, Rest::sleep},
        {"the same, nobody computes", automatic, none, 200, true, false, Rest::look},
        {"longer, nobody computes", automatic, none, 2000, true, false, Rest::pause},
        {"for long, nobody computes", automatic, none, 4000, true, false, Rest::yield},
        {"for long, somebody computes", automatic, none, 4000, true, true, Rest::sleep},
        {"the same, nothing wakes", automatic, none, 4000, false, true, Rest::yield},
        {"more ranks than CPUs", automatic, of_ranks, 1, true, false, Rest::yield},
        {"for long", automatic, of_ranks, later, true, false, Rest::yield},
        {"beside one that computes", automatic, of_ranks, 1, true, true, Rest::sleep},
        {"the same, nothing wakes", automatic, of_ranks, 1, false, true, Rest::yield},
        {"one look more in any case", automatic, of_ranks, first, true, true, Rest::look},
        {"spin", spin, of_ranks, later, true, true, Rest::pause},
        {"yield", yield, none, first, true, true, Rest::yield},
        {"yield for ever", yield, of_ranks, later, true, true, Rest::yield},
        {"sleep, short wait", sleep, none, 29, true, false, Rest::yield},
        {"sleep", sleep, none, 30, true, false, Rest::sleep},
        {"sleep where nothing wakes", sleep, none, 30, false, true, Rest::timed_sleep},
    };
    for (const Case& one : cases) {
        CAPTURE(one.what, one.steps);
        CHECK(next_rest(wait_policy(one.mode, one.crowd), one.steps,
                        {one.can_be_woken, one.others_compute}) == one.rest);
    }
}

TEST_CASE("Ladder: who may sleep, and when", "[base][waiting]") {
    const WaitPolicy never{.spins = 2, .yields = UINT32_MAX};
    const WaitPolicy always{.spins = 2, .yields = 3, .sleeps = Sleeps::always};
    Ladder awake(never), sleepy(always);
    for (int i = 0; i < 5; ++i) {
        CHECK_FALSE(sleepy.wants_sleep());
        sleepy.rest();
        awake.rest();
    }
    CHECK(sleepy.wants_sleep());
    CHECK_FALSE(awake.wants_sleep());
    sleepy.reset();
    CHECK_FALSE(sleepy.wants_sleep());
    sleepy.end_spins();
    CHECK_FALSE(sleepy.spins());
}

TEST_CASE("futex_wait returns at once when the word differs", "[base][waiting]") {
    std::atomic<uint32_t> word{1};
    futex_wait(word, 0, 0);
    SUCCEED("returned");
}

TEST_CASE("futex_wait ends at its timeout", "[base][waiting]") {
    std::atomic<uint32_t> word{0};
    auto start = std::chrono::steady_clock::now();
    futex_wait(word, 0, 3000);
    CHECK(std::chrono::steady_clock::now() - start >= std::chrono::microseconds(3000));
    CHECK(word.load() == 0);
}

TEST_CASE("futex: two threads take turns", "[base][waiting]") {
    std::atomic<uint32_t> turn{0};
    constexpr uint32_t rounds = 1000;
    uint64_t sum = 0;  // no atomic: the turns order the accesses
    auto play = [&](uint32_t parity) {
        for (uint32_t round = parity; round < 2 * rounds; round += 2) {
            for (uint32_t seen; (seen = turn.load(std::memory_order_acquire)) != round;)
                futex_wait(turn, seen, 0);
            sum += round;
            turn.store(round + 1, std::memory_order_release);
            futex_wake_all(turn);
        }
    };
    std::thread other(play, 1);
    play(0);
    other.join();
    CHECK(sum == uint64_t{2 * rounds} * (2 * rounds - 1) / 2);
}

TEST_CASE("futex_wake_all wakes every waiter", "[base][waiting]") {
    std::atomic<uint32_t> word{0};
    auto wait = [&] {
        while (word.load(std::memory_order_acquire) == 0) futex_wait(word, 0, 0);
    };
    std::thread first(wait), second(wait), third(wait);
    word.store(1, std::memory_order_release);
    futex_wake_all(word);
    first.join();
    second.join();
    third.join();
    SUCCEED("all woke");
}

TEST_CASE("is_crowded: a competitor's time slices, not an idle CPU's odd jobs", "[base][waiting]") {
    struct Case {
        uint64_t switches, ran_us, elapsed_us;
        bool crowded;
    };
    for (const Case& test : {Case{0, 5000, 5000, false},
                             // half of the time, in slices of 4 ms
                             Case{1, 4000, 8000, true}, Case{2, 4000, 8000, true},
                             // in between looks, a few microseconds each
                             Case{6, 4900, 5000, true}, Case{2000, 3000, 5000, true},
                             // often and short, but not so often; without being pushed off, as one
                             // who waits for a lock
                             Case{4, 4900, 5000, false}, Case{0, 1000, 5000, false}}) {
        CAPTURE(test.switches, test.ran_us, test.elapsed_us);
        CHECK(is_crowded(test.switches, test.ran_us, test.elapsed_us) == test.crowded);
    }
}

TEST_CASE("CrowdedCpu: notices who spins on its CPU, and gives it time", "[base][waiting]") {
    const std::vector<int> cpus = look_at_host().cpus;
    REQUIRE(!cpus.empty());
    std::atomic<bool> stop{false}, noticed{false};
    std::thread competitor([&] {
        keep_this_thread_on({cpus.back()});
        while (!stop.load()) cpu_pause();
    });
    std::thread looker([&] {
        CHECK(keep_this_thread_on({cpus.back()}));
        CHECK(this_thread_is_on({cpus.back()}));
        CrowdedCpu hasty(0), patient(uint64_t{3600} * 1000000);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        bool found[2] = {};
        for (unsigned look = 0; !(found[0] && found[1]); ++look) {
            if (std::chrono::steady_clock::now() > end) break;
            cpu_pause();
            if (look % 16 == 0) Ladder::give_way();
            found[0] |= hasty.noticed();
            found[1] |= patient.noticed();
        }
        noticed.store(found[0] && found[1]);
        CHECK(hasty.may_be_over());
        CHECK(!patient.may_be_over());
    });
    looker.join();
    stop.store(true);
    competitor.join();
    CHECK(noticed.load());
}
