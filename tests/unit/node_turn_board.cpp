// SPDX-License-Identifier: BSD-3-Clause
// Ranks meet before a turn of a trial: all find the same, also where one gives up.
#include <catch2/catch.hpp>

#include <random>
#include <thread>
#include <vector>

#include "pipeline/node/turn_board.hpp"

using namespace vecmpi::pipeline::node;

TEST_CASE("a meeting is complete once all ranks are in the same call", "[node]") {
    TurnBoard board{};
    CHECK(board.arrive(1, 7, 3) == Meeting::open);
    CHECK(board.arrive(1, 7, 3) == Meeting::open);
    CHECK(board.look(1, 3) == Meeting::open);
    CHECK(board.arrive(1, 7, 3) == Meeting::complete);
    CHECK(board.look(1, 3) == Meeting::complete);
    CHECK(board.call_off(1, 3) == Meeting::complete);  // too late
    CHECK(board.arrive(2, UINT32_MAX, 1) == Meeting::complete);
}

TEST_CASE("a meeting is called off for all, also for who comes later", "[node]") {
    TurnBoard board{};
    CHECK(board.arrive(1, 7, 3) == Meeting::open);
    CHECK(board.arrive(1, 8, 3) == Meeting::called_off);  // another call
    CHECK(board.look(1, 3) == Meeting::called_off);
    CHECK(board.arrive(1, 7, 3) == Meeting::called_off);
    CHECK(board.arrive(2, 9, 2) == Meeting::open);
    CHECK(board.call_off(2, 2) == Meeting::called_off);
    CHECK(board.arrive(3, 9, 2) == Meeting::open);  // one rank is two turns behind
    CHECK(board.arrive(2, 9, 2) == Meeting::called_off);
    CHECK(board.look(2, 2) == Meeting::called_off);
    CHECK(board.arrive(3, 9, 2) == Meeting::complete);
}

TEST_CASE("turns are counted past the end of their number", "[node]") {
    TurnBoard board{};
    for (unsigned turn = 1; turn < 140'000; ++turn) {
        const auto number = static_cast<uint16_t>(turn);
        REQUIRE(board.arrive(number, turn, 2) == Meeting::open);
        if (turn % 3 == 0)
            REQUIRE(board.call_off(number, 2) == Meeting::called_off);
        else
            REQUIRE(board.arrive(number, turn, 2) == Meeting::complete);
    }
}

TEST_CASE("ranks that give up at any time find what the others find", "[node][threads]") {
    constexpr unsigned ranks = 4, turns = 2000;
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    TurnBoard board{};
    // Who has read, by turn: after a complete one nobody goes on before all have.
    std::vector<std::atomic<unsigned>> have_read(turns + 1);
    std::vector<std::vector<Meeting>> found(ranks);
    std::vector<std::thread> threads;
    for (unsigned rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
            std::mt19937 random(seed + rank);
            for (unsigned turn = 1; turn <= turns; ++turn) {
                const auto number = static_cast<uint16_t>(turn);
                const unsigned patience = 1 + random() % 2000;
                Meeting meeting = board.arrive(number, turn / 100, ranks);
                for (unsigned looks = 0; meeting == Meeting::open; ++looks) {
                    meeting = looks == patience ? board.call_off(number, ranks)
                                                : board.look(number, ranks);
                    if (looks % 16 == 0) std::this_thread::yield();
                }
                found[rank].push_back(meeting);
                if (meeting != Meeting::complete) continue;
                have_read[turn].fetch_add(1);
                while (have_read[turn].load() < ranks) std::this_thread::yield();
            }
        });
    for (std::thread& thread : threads) thread.join();
    for (unsigned rank = 1; rank < ranks; ++rank) CHECK(found[rank] == found[0]);
}
