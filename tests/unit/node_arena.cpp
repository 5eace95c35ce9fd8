// SPDX-License-Identifier: BSD-3-Clause
// Arenas: boxes are given out once, come back only when all have closed theirs, and are found by
// others only where they are.
#include <catch2/catch.hpp>

#include <set>

#include "pipeline/node/arena.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline::node;

namespace {

struct Taken {
    Box* box = nullptr;
    uint32_t index = 0;
    uint64_t token = 0;
};

Taken take() {
    Taken taken;
    taken.box = take_box(&taken.index, &taken.token);
    return taken;
}

// Another rank's box of the same communicator, here in ordinary memory.
struct Peer {
    Box box{};
    explicit Peer(uint64_t token) { box.token = token; }
    BoxOfRank entry() { return {&box, box.token}; }
};

}  // namespace

TEST_CASE("an arena's boxes are given out once, and clear", "[node]") {
    REQUIRE(take().box == nullptr);  // there is no arena yet
    ArenaAddress address;
    REQUIRE(own_arena(&address));
    REQUIRE((address.inode != 0 && address.descriptor >= 0));
    std::set<Box*> boxes;
    std::set<uint64_t> tokens;
    std::vector<Taken> all;
    for (uint32_t i = 0; i < boxes_per_arena; ++i) {
        all.push_back(take());
        REQUIRE(all.back().box != nullptr);
        boxes.insert(all.back().box);
        tokens.insert(all.back().token);
        all.back().box->finished[1] = 5;
        all.back().box->one_way[1][15].flag = 7;
    }
    REQUIRE((boxes.size() == boxes_per_arena && tokens.size() == boxes_per_arena));
    REQUIRE(take().box == nullptr);
    return_box(all[9].box);
    const Taken again = take();
    REQUIRE(again.box == all[9].box);
    REQUIRE(again.token != all[9].token);
    REQUIRE((again.box->finished[1] == 0 && again.box->one_way[1][15].flag == 0));
    release_arenas();
}

TEST_CASE("a box comes back once all peers have closed theirs, or use them for something else",
          "[node]") {
    ArenaAddress address;
    REQUIRE(own_arena(&address));
    std::vector<Taken> all;
    for (uint32_t i = 0; i < boxes_per_arena; ++i) all.push_back(take());
    Peer closes(11), reuses(12);
    const Taken mine = all.front();
    retire_box(mine.box, no_bay, {{mine.box, mine.token}, closes.entry(), reuses.entry()});
    REQUIRE(take().box == nullptr);
    closes.box.closed = 1;
    REQUIRE(take().box == nullptr);
    reuses.box.token = 13;
    REQUIRE(take().box == mine.box);
    release_arenas();
}

TEST_CASE("an arena is found by its address, and by no other", "[node]") {
    ArenaAddress address;
    REQUIRE(own_arena(&address));
    const Taken mine = take();
    Box* const seen = map_box(address, mine.index, mine.token);
    REQUIRE(seen != nullptr);
    REQUIRE(seen != mine.box);
    mine.box->finished[0] = 42;
    REQUIRE(seen->finished[0] == 42);
    REQUIRE(map_box(address, mine.index, mine.token) == seen);  // mapped once
    REQUIRE(map_box(address, mine.index, mine.token + 1) == nullptr);
    REQUIRE(map_box(address, boxes_per_arena, mine.token) == nullptr);
    ArenaAddress other = address;
    other.inode += 1;
    REQUIRE(map_box(other, mine.index, mine.token) == nullptr);
    other = address;
    other.descriptor = 0;  // whatever that is, it is no arena
    other.inode += 1;
    REQUIRE(map_box(other, mine.index, mine.token) == nullptr);
    other = address;
    other.process = -1;
    REQUIRE(map_box(other, mine.index, mine.token) == nullptr);
    release_arenas();
}

TEST_CASE("bays get pages when they are taken, and come back with their box", "[node]") {
    REQUIRE(take_bay() == no_bay);  // there is no arena yet
    ArenaAddress address;
    REQUIRE(own_arena(&address));
    const Taken mine = take();
    Box* const seen = map_box(address, mine.index, mine.token);
    std::set<uint32_t> bays;
    uint32_t last = no_bay;
    for (uint32_t i = 0; i < bays_per_arena; ++i) {
        last = take_bay();
        REQUIRE(last < bays_per_arena);
        bays.insert(last);
        Bay* const here = bay_beside(mine.box, last);
        Bay* const there = bay_beside(seen, last);
        REQUIRE((here != nullptr && there != nullptr && here != there));
        here->large[3][100] = static_cast<unsigned char>(i + 1);
        REQUIRE(there->large[3][100] == i + 1);
        here->signals[1][2].round = 9;
    }
    REQUIRE(bays.size() == bays_per_arena);
    REQUIRE(take_bay() == no_bay);
    REQUIRE(bay_beside(mine.box, bays_per_arena) == nullptr);
    REQUIRE(bay_beside(nullptr, 0) == nullptr);
    Peer closes(11);
    retire_box(mine.box, last, {{mine.box, mine.token}, closes.entry()});
    REQUIRE(take_bay() == no_bay);
    closes.box.closed = 1;
    REQUIRE(take_bay() == last);
    REQUIRE(bay_beside(mine.box, last)->signals[1][2].round == 0);
    return_bay(3);
    REQUIRE(take_bay() == 3);
    release_arenas();
    REQUIRE(take_bay() == no_bay);
}
