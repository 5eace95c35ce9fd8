// SPDX-License-Identifier: BSD-3-Clause
// Tracks, how they are merged and what waits for what; and that the executor of the tests finds
// the faults that it is there for.
#include "pipeline/schedules/schedule.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "memory_executor.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline;
using Kind = ScheduleStep::Kind;

namespace {

constexpr Place in{Memory::input, 0}, out{Memory::output, 0}, scratch{Memory::scratch, 0};

using Edges = std::set<std::pair<uint32_t, uint32_t>>;  // earlier, later

Edges edges_of(const Schedule& s) {
    Edges edges;
    for (uint32_t i = 0; i < s.steps.size(); ++i)
        for (uint32_t d = s.first_dependent[i]; d < s.first_dependent[i + 1]; ++d)
            edges.insert({i, s.dependents[d]});
    return edges;
}

Schedule alone(const Track& track, InPlace in_place = {}) {
    return make_schedule({track}, {}, 1, in_place);
}

}  // namespace

TEST_CASE("track: messages are numbered by peer and direction, without empty ones",
          "[pipeline][schedule]") {
    Track track;
    track.send(in, 4, 1);
    track.send(in, 0, 1);
    track.receive(out, 4, 1);
    track.send(in, 4, 2);
    track.send(in, 4, 1);
    track.receive(out, 4, 1);
    track.reduce(in, out, out, 0);
    track.copy(in, out, 0);
    const std::vector<ScheduleStep>& steps = track.steps();
    REQUIRE(steps.size() == 5);
    const uint16_t messages[] = {0, 0, 0, 1, 1};
    const int peers[] = {1, 1, 2, 1, 1};
    for (size_t i = 0; i < 5; ++i) {
        CHECK(steps[i].message == messages[i]);
        CHECK(steps[i].peer == peers[i]);
    }
}

TEST_CASE("schedule: a signal waits for all that were awaited before, and for nothing else",
          "[pipeline][schedule]") {
    Track track;
    track.signal(1);           // 0
    track.await_signal(2);     // 1
    track.receive(out, 4, 3);  // 2
    track.signal(3);           // 3
    track.await_signal(1);     // 4
    track.signal(1);           // 5
    const Schedule s = alone(track);
    CHECK(edges_of(s) == Edges{{1, 3}, {1, 5}, {4, 5}});
    CHECK(s.steps[5].message == 1);
    CHECK(s.sends == 3);
    CHECK(s.receives == 3);
    CHECK(s.largest_message == 4);
}

TEST_CASE("schedule: a step waits for what it reads and for whoever reads what it writes",
          "[pipeline][schedule]") {
    Track track;
    track.receive(out, 10, 1);        // 0
    track.receive(out + 10, 10, 1);   // 1
    track.send(out + 5, 10, 2);       // 2 reads both
    track.receive(out + 12, 3, 1);    // 3 overwrites what 2 reads
    track.send(out + 18, 2, 2);       // 4 reads of 1 only
    track.reduce(out, in, out, 5);    // 5 reads and writes what is of 0
    track.copy(out + 2, scratch, 2);  // 6 reads of 5
    track.receive(out, 20, 1);        // 7 behind all that look at it
    track.send(in, 100, 2);           // 8 the input is nobody's
    const Schedule s = alone(track);
    CHECK(edges_of(s) == Edges{{0, 2},
                               {1, 2},
                               {2, 3},
                               {1, 4},
                               {0, 5},
                               {5, 6},
                               {6, 7},
                               {5, 7},
                               {2, 7},
                               {3, 7},
                               {4, 7},
                               {1, 7}});
    std::vector<uint32_t> waits(s.steps.size(), 0);
    for (const auto& edge : edges_of(s)) ++waits[edge.second];
    CHECK(s.waits == waits);
    CHECK(fake::find_race(s).empty());
}

TEST_CASE("schedule: in place the input is a part of the output", "[pipeline][schedule]") {
    Track track;
    track.copy(in, out + 8, 4);     // onto itself: no step
    track.send(in + 1, 2, 1);       // 0
    track.receive(out + 9, 1, 1);   // 1
    track.receive(out + 11, 1, 1);  // 2
    const Schedule s = alone(track, {true, 8});
    REQUIRE(s.steps.size() == 3);
    CHECK(s.steps[0].from == out + 9);
    CHECK(edges_of(s) == Edges{{0, 1}});
    CHECK(alone(track).steps.size() == 4);
}

TEST_CASE("schedule: tracks alternate, and lanes are used again", "[pipeline][schedule]") {
    const auto part = [](int64_t first, bool longer) {
        Track track;
        const Place slot = track.scratch(longer ? 6 : 4);
        track.receive(slot, 4, 1);
        track.next_round();
        if (longer) track.reduce(slot, in + first, slot, 4);
        track.next_round();
        track.send(slot, 4, 2);
        return track;
    };
    Track last;
    last.copy(out + 4, out, 1);
    const Schedule s = make_schedule({part(0, true), part(4, false), part(8, false)}, last, 2, {});
    const std::vector<int> segments = {0, 1, 0, 0, 1, 2, 2, 0};
    const std::vector<Kind> kinds = {Kind::receive, Kind::receive, Kind::reduce, Kind::send,
                                     Kind::send,    Kind::receive, Kind::send,   Kind::copy};
    REQUIRE(s.steps.size() == 8);
    for (size_t i = 0; i < 8; ++i) {
        INFO("step " << i);
        CHECK(s.steps[i].segment == segments[i]);
        CHECK(s.steps[i].kind == kinds[i]);
    }
    CHECK(s.scratch_elements == 12);
    CHECK(s.steps[1].to == scratch + 6);  // the second lane begins behind the longest
    CHECK(edges_of(s) == Edges{{0, 2}, {2, 3}, {1, 4}, {3, 5}, {5, 6}});
}

TEST_CASE("schedule: more lanes than tracks take no memory", "[pipeline][schedule]") {
    Track track;
    track.receive(track.scratch(5), 5, 1);
    CHECK(make_schedule({track}, {}, 4, {}).scratch_elements == 5);
    CHECK(make_schedule({track, track}, {}, 4, {}).scratch_elements == 10);
    CHECK(make_schedule({}, {}, 4, {}).scratch_elements == 0);
}

TEST_CASE("schedule: steps by chance never race", "[pipeline][schedule]") {
    fake::Random random(Catch::rngSeed());
    UNSCOPED_INFO("--rng-seed " << Catch::rngSeed());
    for (int i = 0; i < 400; ++i) {
        std::vector<Track> tracks(1 + random.below(4));
        for (Track& track : tracks) {
            const Place lane = track.scratch(30);
            const auto place = [&] {
                return (random.coin()   ? lane
                        : random.coin() ? out
                                        : in) +
                       static_cast<int64_t>(random.below(20));
            };
            for (int step = 0; step < 30; ++step) {
                const auto count = static_cast<int64_t>(random.below(11));
                const Place to =
                    (random.coin() ? lane : out) + static_cast<int64_t>(random.below(20));
                const auto kind = random.below(4);
                if (kind == 0) track.send(place(), count, 1);
                if (kind == 1) track.receive(to, count, 1);
                if (kind == 2) track.reduce(place(), place(), to, count);
                if (kind == 3) track.copy(place(), to, count);
            }
        }
        const Schedule s = make_schedule(tracks, {}, 1 + static_cast<unsigned>(random.below(3)),
                                         {random.coin(), 3});
        const std::string race = fake::find_race(s);
        if (!race.empty()) FAIL_CHECK(race);
    }
    SUCCEED();
}

TEST_CASE("blocks: part s of S of each", "[pipeline][schedule]") {
    const Blocks blocks = equal_blocks({100, 11}, 3);
    const int64_t firsts[] = {100, 104, 108}, counts[] = {4, 4, 3};
    std::vector<int> covered(11, 0);
    for (size_t i = 0; i < 3; ++i) {
        CHECK(blocks[i].first == firsts[i]);
        CHECK(blocks[i].count == counts[i]);
        for (unsigned part = 0; part < 3; ++part) {
            const Segment s = part_of_blocks(blocks, 3, part)[i];
            CHECK(s.first >= blocks[i].first);
            CHECK(s.first + s.count <= blocks[i].first + blocks[i].count);
            for (int64_t at = s.first; at < s.first + s.count; ++at)
                ++covered[static_cast<size_t>(at - 100)];
        }
    }
    CHECK(covered == std::vector<int>(11, 1));
}

// ---- the executor

namespace {

fake::Element add(fake::Element left, fake::Element right) { return left + right; }

// What goes wrong with these two ranks in one of 300 orders; an empty string: nothing.
std::string wrong_with(const std::vector<Schedule>& schedules, uint32_t limit = UINT32_MAX) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
        std::vector<fake::RankMemory> memories(
            2, {{1, 2, 3, 4}, std::vector<fake::Element>(4, fake::uninitialised)});
        const auto outcome =
            fake::run_in_memory(schedules, memories, add, {fake::Order::Sends::mixed, limit, seed});
        if (!outcome.error.empty()) return outcome.error;
    }
    return {};
}

Schedule sends(int peer, int64_t count = 4) {
    Track track;
    track.send(in, count, peer);
    return alone(track);
}
Schedule receives(int peer, int64_t count = 4) {
    Track track;
    track.receive(out, count, peer);
    return alone(track);
}

// The schedule without its n-th edge.
Schedule without_edge(Schedule s, uint32_t n) {
    --s.waits[s.dependents[n]];
    s.dependents.erase(s.dependents.begin() + n);
    for (uint32_t& first : s.first_dependent)
        if (first > n) --first;
    return s;
}

using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("executor: finds what is wrong with messages and places", "[pipeline][executor]") {
    const Schedule nothing = alone(Track());
    CHECK(wrong_with({sends(1), receives(0)}).empty());
    CHECK_THAT(wrong_with({sends(1), nothing}), Contains("nobody receives"));
    CHECK_THAT(wrong_with({nothing, receives(0)}), Contains("nobody sends"));
    CHECK_THAT(wrong_with({sends(1, 3), receives(0)}), Contains("other size"));
    CHECK_THAT(wrong_with({sends(1, 5), receives(0, 5)}), Contains("outside"));
    Track unread;
    unread.send(out, 4, 1);
    CHECK_THAT(wrong_with({alone(unread), receives(0)}), Contains("not defined"));
    Track to_input;
    to_input.receive(in, 4, 0);
    CHECK_THAT(wrong_with({sends(1), alone(to_input)}), Contains("writes the input"));
}

TEST_CASE("executor: finds deadlocks", "[pipeline][executor]") {
    Track first, second;
    first.receive(out, 2, 1);
    first.send(out, 2, 1);
    second.receive(out, 2, 0);
    second.send(out, 2, 0);
    CHECK_THAT(wrong_with({alone(first), alone(second)}), Contains("deadlock"));
    // Messages in another order on the other side: only a limit makes them meet never.
    Track there;
    there.send(in, 1, 1);
    there.send(in, 2, 1);
    Schedule turned;
    Track here;
    here.receive(out, 1, 0);
    here.receive(out + 1, 2, 0);
    turned = alone(here);
    std::swap(turned.steps[0], turned.steps[1]);
    CHECK(wrong_with({alone(there), turned}).empty());
    CHECK_THAT(wrong_with({alone(there), turned}, 1), Contains("deadlock"));
}

TEST_CASE("executor: every dependency that is missing shows", "[pipeline][executor]") {
    Track track;
    const Place slot = track.scratch(4);
    track.receive(slot, 4, 1);
    track.reduce(slot, in, out, 4);
    track.receive(slot, 4, 1);
    track.reduce(out, slot, out, 4);
    track.send(out, 4, 1);
    track.receive(out, 4, 1);
    Track other;
    other.send(in, 4, 0);
    other.send(in, 4, 0);
    other.send(in, 4, 0);
    other.receive(out, 4, 0);
    const Schedule s = alone(track);
    REQUIRE(wrong_with({s, alone(other)}).empty());
    REQUIRE(fake::find_race(s).empty());
    // 1 -> 3 is the only one that others make superfluous: 1, 2, 3.
    for (uint32_t i = 0; i < s.first_dependent.size() - 1; ++i)
        for (uint32_t n = s.first_dependent[i]; n < s.first_dependent[i + 1]; ++n) {
            INFO("step " << s.dependents[n] << " no longer waits for step " << i);
            const bool shows = !(i == 1 && s.dependents[n] == 3);
            CHECK(fake::find_race(without_edge(s, n)).empty() != shows);
            CHECK(wrong_with({without_edge(s, n), alone(other)}).empty() != shows);
        }
}
