// SPDX-License-Identifier: BSD-3-Clause
// Trials: who has which turn, who is dropped, who wins.
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "base/api/trial.hpp"

using vecmpi::base::Trial;

namespace {

constexpr uint64_t untried = Trial::untried;

// Turns until the trial is over; candidate i always takes times[i].
std::vector<unsigned> turns_of(Trial& trial, const Trial::Times& times) {
    std::vector<unsigned> turns;
    while (trial.winner() == Trial::open && turns.size() < 100) {
        turns.push_back(trial.next());
        if (trial.note(turns.back(), times[turns.back()])) trial.judge(trial.least());
    }
    return turns;
}

unsigned turns_of(const std::vector<unsigned>& turns, unsigned candidate) {
    return static_cast<unsigned>(std::count(turns.begin(), turns.end(), candidate));
}

}  // namespace

TEST_CASE("the fastest candidate wins, a preferred one if it is nearly as fast", "[trial]") {
    struct Row {
        unsigned candidates;
        Trial::Times times;
        unsigned winner;
    };
    const Row rows[] = {
        {0b11, {100, 90, 1}, 1},     {0b11, {100, 98, 1}, 0},     {0b111, {100, 98, 96}, 2},
        {0b101, {100, 1, 99}, 0},    {0b110, {1, 100, 99}, 1},    {0b111, {300, 200, 100}, 2},
        {0b111, {100, 1000, 95}, 2}, {0b111, {0, 0, 0}, 0},       {0b11, {100, 100, 1}, 0},
        {0b111, {96, 100, 94}, 0},   {0b111, {100, 120, 140}, 0},
    };
    for (const Row& row : rows) {
        CAPTURE(row.candidates, row.times[0], row.times[1], row.times[2]);
        Trial trial(row.candidates);
        turns_of(trial, row.times);
        CHECK(trial.winner() == row.winner);
    }
}

TEST_CASE("all have as many turns, each in every place of a round", "[trial]") {
    Trial two, three(0b111);
    const std::vector<unsigned> of_two = turns_of(two, {100, 100, 1});
    CHECK(of_two.size() == 2 * Trial::rounds);
    CHECK(turns_of(of_two, 0) == Trial::rounds);
    for (const size_t first : {0, 1})  // a program that alternates between two kinds of calls
        CHECK(of_two[first] != of_two[first + 2]);
    const std::vector<unsigned> of_three = turns_of(three, {100, 100, 100});
    CHECK(of_three.size() == 3 * Trial::rounds);
    for (unsigned i = 0; i < 3; ++i) CHECK(turns_of(of_three, i) == Trial::rounds);
    for (size_t first = 0; first < 3; ++first)
        CHECK(of_three[first] + of_three[3 + first] + of_three[6 + first] == 3);
}

TEST_CASE("who is clearly slower is dropped, so a trial's cost is bounded", "[trial]") {
    const Trial::Times times{100, 160, 1000};
    Trial of_long, of_short(0b111);
    of_long.admit(0b111, Trial::Calls::are_long);
    const std::vector<unsigned> turns = turns_of(of_long, times);
    CHECK(turns_of(turns, 2) == 1);
    CHECK(turns_of(turns, 1) == 2);
    CHECK(of_long.winner() == 0);
    CHECK(of_long.cost(times) == 900 + 2 * 60);
    turns_of(of_short, times);
    CHECK(of_short.cost(times) == 2 * 900 + 2 * 60);
}

TEST_CASE("the last candidate may begin", "[trial]") {
    Trial trial(0b111);
    trial.admit(0b101, Trial::Calls::are_long, Trial::Begins::last);
    const std::vector<unsigned> turns = turns_of(trial, {100, 1, 110});
    CHECK(turns == std::vector<unsigned>{2, 0, 0, 2, 2, 0, 0, 2});
    CHECK(trial.winner() == 0);
}

TEST_CASE("one slow call of many decides nothing", "[trial]") {
    Trial trial;
    unsigned turns[2] = {};
    while (trial.winner() == Trial::open) {
        const unsigned who = trial.next();
        const bool is_interrupted = turns[who]++ == (who == 0 ? 1u : 3u);
        if (trial.note(who, is_interrupted ? 100'000 : 200 - 20 * who)) trial.judge(trial.least());
    }
    CHECK(trial.winner() == 1);
    CHECK(turns[0] == Trial::rounds);
}

TEST_CASE("cold turns do not count, unless nearly all are cold", "[trial]") {
    Trial warming, cold(0b11);
    unsigned turns = 0, cold_turns = 0;
    while (warming.winner() == Trial::open) {
        const unsigned who = warming.next();
        const bool is_cold = who == 1 && cold_turns < 20;
        cold_turns += is_cold;
        ++turns;
        if (warming.note(who, is_cold ? 1000 : 100 - 20 * who,
                         is_cold ? Trial::Memory::cold : Trial::Memory::warm))
            warming.judge(warming.least());
    }
    CHECK(warming.winner() == 1);
    CHECK(turns == 2 * Trial::rounds + 20);
    turns = 0;
    while (cold.winner() == Trial::open) {
        const unsigned who = cold.next();
        ++turns;
        if (cold.note(who, 100 + 20 * who, Trial::Memory::cold)) cold.judge(cold.least());
    }
    CHECK(cold.winner() == 0);
    CHECK(turns == 2 * Trial::rounds + Trial::most_cold_turns);
}

TEST_CASE("a trial asks for judgement once a round, and never after its end", "[trial]") {
    Trial trial;
    CHECK_FALSE(trial.has_begun());
    CHECK(trial.least() == Trial::Times{untried, untried, untried});
    CHECK_FALSE(trial.note(trial.next(), 5));
    CHECK(trial.has_begun());
    CHECK(trial.note(trial.next(), 7));
    CHECK(trial.least() == Trial::Times{5, 7, untried});
    trial.judge(trial.least());
    CHECK(trial.has_begun());
    CHECK(trial.winner() == Trial::open);
    trial.award(1);
    CHECK(trial.winner() == 1);
    CHECK_FALSE(trial.note(0, 1));
    CHECK_FALSE(trial.note(1, 1));
}

TEST_CASE("the times that are judged by may be another rank's", "[trial]") {
    Trial mine, other;
    for (Trial* trial : {&mine, &other})
        while (trial->winner() == Trial::open) {
            const unsigned who = trial->next();
            const uint64_t time = trial == &mine ? 10 + who : 100 - 10 * who;  // ten times as slow
            if (trial->note(who, time)) trial->judge({100, 90, untried});
        }
    CHECK(mine.winner() == 1);
    CHECK(other.winner() == 1);
}

TEST_CASE("of one candidate nothing is tried", "[trial]") {
    Trial trial(0b111);
    trial.admit(0b100, Trial::Calls::are_short);
    CHECK(trial.winner() == 2);
    Trial others;
    others.admit(0b101, Trial::Calls::are_short);
    CHECK(others.winner() == Trial::open);
    turns_of(others, {100, 1, 50});
    CHECK(others.winner() == 2);
}
