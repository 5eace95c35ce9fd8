// SPDX-License-Identifier: BSD-3-Clause
// Lines, their stores and the test of these; the plan of the butterfly; teams of threads.
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "pipeline/node/api/butterfly.hpp"
#include "pipeline/node/api/line_test.hpp"
#include "vecmpi/team.h"

using namespace vecmpi;
using namespace vecmpi::pipeline::node;

namespace {

constexpr kernels::LineWidth all_widths[] = {
    kernels::LineWidth::bytes8, kernels::LineWidth::bytes16, kernels::LineWidth::bytes32,
    kernels::LineWidth::bytes64};

template <class Body>
void in_threads(int threads, const Body& body) {
    std::vector<std::thread> all;
    for (int t = 1; t < threads; ++t) all.emplace_back(body, t);
    body(0);
    for (std::thread& thread : all) thread.join();
}

}  // namespace

TEST_CASE("a line's store moves its flag and at least the data asked for", "[node]") {
    for (const kernels::LineWidth width : all_widths) {
        for (size_t bytes = 0; bytes <= kernels::line_data_bytes; ++bytes) {
            kernels::Line from, to;
            for (size_t i = 0; i < kernels::line_data_bytes; ++i)
                from.data[i] = static_cast<unsigned char>(i + 1);
            from.flag = 77;
            std::memset(&to, 0, sizeof to);
            kernels::line_store(width, bytes)(&to, &from);
            REQUIRE(to.flag == 77);
            const size_t begin = kernels::line_data_bytes - bytes;
            REQUIRE(std::memcmp(to.data + begin, from.data + begin, bytes) == 0);
        }
    }
}

TEST_CASE("the test of a line's store tells a store that tears", "[node]") {
    // What a reader would see of a store of halves, the flag's half first.
    kernels::Line line;
    std::memset(&line, 0, sizeof line);
    line.flag = line_test_stores;
    const LineTest torn = read_test_lines(line, 1000);
    REQUIRE(torn.seen == 1);
    REQUIRE(torn.torn == 1);
    REQUIRE_FALSE(line_test_proves({.seen = 10000, .torn = 1}));
    REQUIRE_FALSE(line_test_proves({.seen = 1, .torn = 0}));
    REQUIRE(line_test_proves({.seen = 10000, .torn = 0}));

    kernels::Line written;
    write_test_lines(written, kernels::LineWidth::bytes8);
    REQUIRE(read_test_lines(written, 1000).torn == 0);
}

TEST_CASE("both sides of the test of stores come to the same width", "[node]") {
    const auto board = std::make_unique<LineTestBoard>();
    const WaitPolicy waiting = wait_policy(WaitMode::yield, Crowd::of_threads);
    kernels::LineWidth widths[2];
    in_threads(2, [&](int thread) {
        widths[thread] = test_line_widths(*board, static_cast<LineTestSide>(thread), waiting);
    });
    REQUIRE(widths[0] == widths[1]);
    REQUIRE(widths[0] >= kernels::promised_line_width());
    REQUIRE(widths[0] <= kernels::widest_line_width());
}

TEST_CASE("the butterfly's plan pairs everyone", "[node]") {
    for (int participants = 1; participants <= 130; ++participants) {
        const int core = ButterflyPlan{participants, 0}.core();
        REQUIRE(core <= participants);
        REQUIRE(2 * core > participants);
        int masters = 0;
        for (int me = 0; me < participants; ++me) {
            const ButterflyPlan plan{participants, me};
            REQUIRE(1 << plan.steps() == core);
            const int other = plan.other_of_group();
            if (other >= 0) {
                REQUIRE(ButterflyPlan{participants, other}.other_of_group() == me);
                REQUIRE(plan.is_extra() != ButterflyPlan{participants, other}.is_extra());
            }
            if (plan.is_extra()) {
                REQUIRE(other >= 0);
                continue;
            }
            ++masters;
            for (int step = 0; step < plan.steps(); ++step) {
                const ButterflyPlan partner{participants, plan.partner(step)};
                REQUIRE(partner.me != me);
                REQUIRE_FALSE(partner.is_extra());
                REQUIRE(partner.partner(step) == me);
            }
        }
        REQUIRE(masters == core);
    }
}

TEST_CASE("a team refuses what it cannot do", "[node]") {
    errno = 0;
    REQUIRE(vecmpi_team_create(0) == nullptr);
    REQUIRE(errno == EINVAL);
    REQUIRE(vecmpi_team_create(-3) == nullptr);
    REQUIRE(vecmpi_team_create(65537) == nullptr);
    vecmpi_team_free(nullptr);
    vecmpi_team* team = vecmpi_team_create(1);
    REQUIRE(team != nullptr);
    double value = 2.5;
    const auto reduce = [&](long count, int type, int op) {
        return vecmpi_team_allreduce(team, 0, &value, count, static_cast<vecmpi_team_type>(type),
                                     static_cast<vecmpi_team_op>(op));
    };
    REQUIRE(reduce(-1, VECMPI_TEAM_DOUBLE, VECMPI_TEAM_SUM) == EINVAL);
    REQUIRE(reduce(1, 99, VECMPI_TEAM_SUM) == EINVAL);
    REQUIRE(reduce(1, VECMPI_TEAM_DOUBLE, 99) == EINVAL);
    REQUIRE(reduce(1, VECMPI_TEAM_DOUBLE, VECMPI_TEAM_BXOR) == EINVAL);
    REQUIRE(reduce(1, VECMPI_TEAM_DOUBLE, VECMPI_TEAM_SUM) == 0);
    REQUIRE(reduce(0, VECMPI_TEAM_DOUBLE, VECMPI_TEAM_SUM) == 0);
    REQUIRE(value == 2.5);
    vecmpi_team_free(team);
}

TEST_CASE("no thread leaves a team's barrier before all have come", "[node]") {
    constexpr int rounds = 200;
    for (const int threads : {1, 2, 3, 4, 5, 7, 8, 13}) {
        vecmpi_team* team = vecmpi_team_create(threads);
        std::vector<int> round_of(static_cast<size_t>(threads), 0);  // ordered by the barrier alone
        std::atomic<int> early{0};
        in_threads(threads, [&](int thread) {
            for (int round = 1; round <= rounds; ++round) {
                round_of[static_cast<size_t>(thread)] = round;
                vecmpi_team_barrier(team, thread);
                for (const int other : round_of) early += other != round;
                vecmpi_team_barrier(team, thread);
            }
        });
        REQUIRE(early == 0);
        vecmpi_team_free(team);
    }
}

namespace {

// 64-bit integers wrap, so every order of summation gives the same.
struct Case {
    std::vector<std::vector<int64_t>> values;  // by thread
    vecmpi_team_op op;
    std::vector<int64_t> expected;
};

int64_t apply(vecmpi_team_op op, int64_t a, int64_t b) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (op) {
        case VECMPI_TEAM_MAX:
            return std::max(a, b);
        case VECMPI_TEAM_MIN:
            return std::min(a, b);
        case VECMPI_TEAM_SUM:
            return static_cast<int64_t>(x + y);
        case VECMPI_TEAM_PROD:
            return static_cast<int64_t>(x * y);
        case VECMPI_TEAM_BAND:
            return a & b;
        case VECMPI_TEAM_BOR:
            return a | b;
        case VECMPI_TEAM_BXOR:
            return a ^ b;
    }
    return 0;
}

Case random_case(std::mt19937_64& random, int threads) {
    constexpr size_t counts[] = {0, 1, 2, 3, 6, 7, 8, 9, 31, 100, 2047, 5000};
    const size_t count = counts[random() % std::size(counts)];
    Case made;
    made.op = static_cast<vecmpi_team_op>(random() % 7);
    made.values.resize(static_cast<size_t>(threads));
    for (auto& values : made.values)
        for (size_t i = 0; i < count; ++i) values.push_back(static_cast<int64_t>(random()));
    made.expected = made.values[0];
    for (size_t t = 1; t < made.values.size(); ++t)
        for (size_t i = 0; i < count; ++i)
            made.expected[i] = apply(made.op, made.expected[i], made.values[t][i]);
    return made;
}

}  // namespace

TEST_CASE("a team of 1 to 33 threads reduces right", "[node]") {
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    for (int threads = 1; threads <= 33; ++threads) {
        std::mt19937_64 random(seed + static_cast<unsigned>(threads));
        std::vector<Case> cases;
        for (int i = 0; i < 20; ++i) cases.push_back(random_case(random, threads));
        vecmpi_team* team = vecmpi_team_create(threads);
        in_threads(threads, [&](int thread) {
            for (Case& one : cases) {
                auto& mine = one.values[static_cast<size_t>(thread)];
                vecmpi_team_allreduce(team, thread, mine.data(), static_cast<long>(mine.size()),
                                      VECMPI_TEAM_INT64, one.op);
            }
        });
        size_t wrong = 0;
        for (const Case& one : cases)
            for (const auto& values : one.values) wrong += values != one.expected;
        INFO("threads " << threads);
        REQUIRE(wrong == 0);
        vecmpi_team_free(team);
    }
}

TEST_CASE("a team's sums of doubles are the same bits for all threads", "[node]") {
    for (const int threads : {2, 3, 6, 8}) {
        for (const size_t count : {1u, 3u, 7u, 50u}) {
            vecmpi_team* team = vecmpi_team_create(threads);
            std::vector<std::vector<double>> values(static_cast<size_t>(threads));
            std::mt19937_64 random(count);
            for (auto& mine : values)
                for (size_t i = 0; i < count; ++i)
                    mine.push_back(static_cast<double>(random()) / 3e12);
            in_threads(threads, [&](int thread) {
                auto& mine = values[static_cast<size_t>(thread)];
                vecmpi_team_allreduce(team, thread, mine.data(), static_cast<long>(count),
                                      VECMPI_TEAM_DOUBLE, VECMPI_TEAM_SUM);
            });
            for (const auto& mine : values) REQUIRE(mine == values[0]);
            vecmpi_team_free(team);
        }
    }
}
