// SPDX-License-Identifier: BSD-3-Clause
// What trials of transports are kept by, and reading the memory of a process.
#include <catch2/catch.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/node/node_trials.hpp"
#include "pipeline/node/peer_memory.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline;
using namespace vecmpi::pipeline::node;

TEST_CASE("sizes share a trial up to the next power of two, not with what a line carries",
          "[node]") {
    CHECK(size_class(0) != size_class(1));
    CHECK(size_class(4096) == size_class(8191));
    CHECK(size_class(8191) != size_class(8192));
    CHECK(size_class(56) != size_class(57));
    CHECK(size_class(57) == size_class(64));
    CHECK(size_class(size_t{1} << 30) == size_class(SIZE_MAX));
    for (size_t bytes = 0; bytes < 5000; ++bytes) CHECK(size_class(bytes) < size_classes);
}

TEST_CASE("few long calls are the library's before there are staging buffers", "[node]") {
    CHECK_FALSE(are_few_long_calls(long_bytes - 1, 0));
    CHECK(are_few_long_calls(long_bytes, 0));
    CHECK(are_few_long_calls(size_t{1} << 30, 0));
    CHECK(are_few_long_calls(long_bytes, moved_before_staging - 1));
    CHECK_FALSE(are_few_long_calls(long_bytes, moved_before_staging));
}

TEST_CASE("what a trial has found serves communicators of as many ranks", "[node]") {
    remember_transport(77, Collective::bcast, 5000, 2);
    remember_transport(77, Collective::barrier, 0, 0);
    remember_called_off(77, Collective::reduce, 2);
    const FoundOnNode found = found_on_node(77), others = found_on_node(78);
    const auto of = [](const FoundOnNode& in, Collective collective, size_t bytes) {
        return in.transports[static_cast<size_t>(collective)][size_class(bytes)];
    };
    const auto called_off = [](const FoundOnNode& in, Collective collective) {
        return in.called_off[static_cast<size_t>(collective)];
    };
    CHECK(called_off(found, Collective::reduce) == 2);
    CHECK(called_off(found, Collective::bcast) == 0);
    CHECK(called_off(others, Collective::reduce) == 0);
    CHECK(of(found, Collective::bcast, 4096) == 2);
    CHECK(of(found, Collective::barrier, 0) == 0);
    CHECK(of(found, Collective::bcast, 9000) == base::Trial::open);
    CHECK(of(found, Collective::reduce, 5000) == base::Trial::open);
    CHECK(of(others, Collective::bcast, 5000) == base::Trial::open);
    NodeTrials trials;
    trials.adopt(found.transports);
    CHECK(trials.of(Collective::bcast, 6000).trial.winner() == 2);
    CHECK(trials.of(Collective::bcast, 60000).trial.winner() == base::Trial::open);
}

TEST_CASE("a winner that is much slower in two checks in a row must win again", "[node]") {
    RowTrial one;
    one.trial.award(1);
    one.winner_ns = 100;
    CHECK_FALSE(one.check(390));
    CHECK_FALSE(one.check(500));
    CHECK_FALSE(one.check(300));  // not in a row
    CHECK_FALSE(one.check(500));
    CHECK(one.trial.winner() == 1);
    CHECK(one.check(500));
    CHECK(one.trial.winner() == base::Trial::open);
    CHECK_FALSE(one.trial.has_begun());
    one.trial.award(0);  // adopted: its time is not known
    CHECK_FALSE(one.check(5000));
    CHECK_FALSE(one.check(5000));
    CHECK_FALSE(one.check(5000));
    CHECK(one.trial.winner() == 0);
}

TEST_CASE("memory of a process is read whole, or not at all", "[node]") {
    const PeerProcess self = this_process();
    REQUIRE(is_readable(self));
    PeerProcess other = self;
    other.word += 1;  // the number belongs to another process here
    CHECK_FALSE(is_readable(other));
    other = self;
    other.process = -1;
    CHECK_FALSE(is_readable(other));
    const char from[] = "some bytes";
    char to[sizeof from] = {};
    const auto address = reinterpret_cast<uintptr_t>(from);
    CHECK(read_memory(self, address, to, sizeof from));
    CHECK(std::string(to) == from);
    CHECK_FALSE(read_memory(self, 16, to, 1));
    CHECK(are_readable(self, {address, address + 3, address + 4, address}));
    CHECK_FALSE(are_readable(self, {address, address + 3, 16, address}));
}

TEST_CASE("winner and rivals meet again, ever more rarely while the winner stays", "[node]") {
    RowTrial one;
    one.trial.award(2);
    CHECK(one.rivals(0b101) == 0b101);  // adopted
    const auto play = [&](uint64_t first, uint64_t second, uint64_t third) {
        one.trial.begin_rematch(0b111);
        const base::Trial::Times times{first, second, third};
        unsigned turns = 0;
        for (; one.trial.winner() == base::Trial::open; ++turns) {
            const unsigned who = one.trial.next();
            if (one.trial.note(who, times[who])) one.trial.judge(one.trial.least());
        }
        one.decided();
        return turns;
    };
    CHECK(play(100, 130, 900) == 3 + 2 * 2);  // the third is dropped at once
    CHECK(one.trial.winner() == 0);
    CHECK(one.calls_to_check == RowTrial::first_check);
    CHECK(one.rivals(0b111) == 0b011);
    CHECK(one.rivals(0b101) == 0b001);
    play(100, 130, 900);
    CHECK(one.calls_to_check == 4 * RowTrial::first_check);
    for (int i = 0; i < 5; ++i) play(100, 130, 900);
    CHECK(one.calls_to_check == RowTrial::most_between_checks);
    CHECK(one.rivals(0b101) == 0b101);  // also those who were slow long ago
    play(100, 50, 900);
    CHECK(one.trial.winner() == 1);
    CHECK(one.calls_to_check == RowTrial::first_check);
    one.calls_to_check = 2;
    CHECK_FALSE(one.is_check_due());
    CHECK(one.is_check_due());
}

namespace {
struct Times {
    uint64_t begun, ended;
};
TurnRow row_of(const std::vector<Times>& calls) {
    TurnRow row;
    row.length = static_cast<uint8_t>(calls.size());
    for (const Times& one : calls) {
        row.begin_call();
        row.end_call(one.begun, one.ended);
    }
    return row;
}
}  // namespace

TEST_CASE("a row shows the first call where the program has work between, else the later ones",
          "[node]") {
    const TurnRow row = row_of({{1000, 1300}, {1500, 1800}, {1810, 1900}, {1920, 2030}});
    CHECK(row.is_full());
    CHECK(row.counted == 2);
    const RowTimes own = row.times();
    CHECK(own.first_ns == 300);
    CHECK(own.second_ns == 230);
    CHECK(own.has_gaps == 0);
    CHECK(own.missing == 0);
    CHECK(row_of({{0, 10}, {10, 30}}).times().second_ns == 20);
    CHECK(row_of({{0, 10}}).counted == 0);
    // Another rank works while this one waits in the call.
    const TurnRow late = row_of({{1000, 1310}, {1500, 1800}, {1900, 1910}, {2010, 2030}});
    CHECK(late.times().has_gaps == 1);
    CHECK(pace_of(own, 2) == Pace::without_gaps);
    const RowTimes all = slowest(own, late.times());
    CHECK(pace_of(all, 2) == Pace::with_gaps);
    CHECK(pace_of(own, 0) == Pace::with_gaps);
    CHECK(time_of(own, 2, Pace::without_gaps).ns == 115);
    CHECK(time_of(all, 2, Pace::with_gaps).ns == 310);
    CHECK(time_of(all, 0, Pace::with_gaps).memory == base::Trial::Memory::warm);
}

TEST_CASE("a row whose call was left by longjmp is as long, and says so", "[node]") {
    TurnRow row;
    row.length = 2;
    row.begin_call();
    row.begin_call();
    row.end_call(10, 20);
    CHECK(row.is_full());
    CHECK(row.counted == 1);
    CHECK(row.times().missing == 1);
}

TEST_CASE("cold rows count once they have taken long", "[node]") {
    RowTrial one;
    TimeOfCall call{1'000'000, base::Trial::Memory::cold};
    for (int rows = 0; rows < 2; ++rows) {
        one.note_cold(call, 4);
        CHECK(call.memory == base::Trial::Memory::cold);
    }
    one.note_cold(call, 4);
    CHECK(call.memory == base::Trial::Memory::warm);
}

TEST_CASE("page faults count where they fell", "[node]") {
    TurnRow row = row_of({{0, 20'000}, {20'000, 80'000}});
    row.faults_before = 5;
    row.ended = 1;
    row.note_faults(8);
    row.ended = 2;
    row.note_faults(8);
    CHECK(time_of(row.times(), 1, Pace::with_gaps).memory == base::Trial::Memory::cold);
    CHECK(time_of(row.times(), 1, Pace::without_gaps).memory == base::Trial::Memory::warm);
    row.note_faults(14);
    CHECK(time_of(row.times(), 1, Pace::without_gaps).memory == base::Trial::Memory::cold);
    row.note_faults(1);  // another thread's count
    CHECK(row.faults == 0);
}
