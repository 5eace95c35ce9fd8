// SPDX-License-Identifier: BSD-3-Clause
// Arenas: mailboxes are given out once, come back only when all have closed theirs, and are found
// by others only where they are.
#include <catch2/catch.hpp>

#include <set>

#include "pipeline/node/arena.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline::node;

namespace {

struct Taken {
    Mailbox* mailbox = nullptr;
    uint32_t index = 0;
    uint64_t token = 0;
};

Taken take() {
    Taken taken;
    taken.mailbox = take_mailbox(&taken.index, &taken.token);
    return taken;
}

// Another rank's mailbox of the same communicator, here in ordinary memory.
struct Peer {
    Mailbox mailbox{};
    explicit Peer(uint64_t token) { mailbox.token = token; }
    MailboxOfRank entry() { return {&mailbox, mailbox.token}; }
};

}  // namespace

TEST_CASE("an arena's mailboxes are given out once, and clear", "[node]") {
    REQUIRE(take().mailbox == nullptr);  // there is no arena yet
    ArenaAddress address;
    REQUIRE(own_arena(&address));
    REQUIRE((address.inode != 0 && address.descriptor >= 0));
    std::set<Mailbox*> mailboxes;
    std::set<uint64_t> tokens;
    std::vector<Taken> all;
    for (uint32_t i = 0; i < mailboxes_per_arena; ++i) {
        all.push_back(take());
        REQUIRE(all.back().mailbox != nullptr);
        mailboxes.insert(all.back().mailbox);
        tokens.insert(all.back().token);
        all.back().mailbox->finished[1] = 5;
        all.back().mailbox->one_way[1][15].flag = 7;
    }
    REQUIRE((mailboxes.size() == mailboxes_per_arena && tokens.size() == mailboxes_per_arena));
    REQUIRE(take().mailbox == nullptr);
    return_mailbox(all[9].mailbox);
    const Taken again = take();
    REQUIRE(again.mailbox == all[9].mailbox);
    REQUIRE(again.token != all[9].token);
    REQUIRE((again.mailbox->finished[1] == 0 && again.mailbox->one_way[1][15].flag == 0));
    release_arenas();
}

TEST_CASE("a mailbox comes back once all peers have closed theirs, or use them for something else",
          "[node]") {
    ArenaAddress address;
    REQUIRE(own_arena(&address));
    std::vector<Taken> all;
    for (uint32_t i = 0; i < mailboxes_per_arena; ++i) all.push_back(take());
    Peer closes(11), reuses(12);
    const Taken mine = all.front();
    retire_mailbox(mine.mailbox, no_staging_buffer,
                   {{mine.mailbox, mine.token}, closes.entry(), reuses.entry()});
    REQUIRE(take().mailbox == nullptr);
    closes.mailbox.closed = 1;
    REQUIRE(take().mailbox == nullptr);
    reuses.mailbox.token = 13;
    REQUIRE(take().mailbox == mine.mailbox);
    release_arenas();
}

TEST_CASE("an arena is found by its address, and by no other", "[node]") {
    ArenaAddress address;
    REQUIRE(own_arena(&address));
    const Taken mine = take();
    Mailbox* const seen = map_mailbox(address, mine.index, mine.token);
    REQUIRE(seen != nullptr);
    REQUIRE(seen != mine.mailbox);
    mine.mailbox->finished[0] = 42;
    REQUIRE(seen->finished[0] == 42);
    REQUIRE(map_mailbox(address, mine.index, mine.token) == seen);  // mapped once
    REQUIRE(map_mailbox(address, mine.index, mine.token + 1) == nullptr);
    REQUIRE(map_mailbox(address, mailboxes_per_arena, mine.token) == nullptr);
    ArenaAddress other = address;
    other.inode += 1;
    REQUIRE(map_mailbox(other, mine.index, mine.token) == nullptr);
    other = address;
    other.descriptor = 0;  // whatever that is, it is no arena
    other.inode += 1;
    REQUIRE(map_mailbox(other, mine.index, mine.token) == nullptr);
    other = address;
    other.process = -1;
    REQUIRE(map_mailbox(other, mine.index, mine.token) == nullptr);
    release_arenas();
}

TEST_CASE("staging buffers get pages when they are taken, and come back with their mailbox",
          "[node]") {
    REQUIRE(take_staging_buffer(RingWidth::wide) == no_staging_buffer);  // there is no arena yet
    ArenaAddress address;
    REQUIRE(own_arena(&address));
    const Taken mine = take();
    Mailbox* const seen = map_mailbox(address, mine.index, mine.token);
    std::set<uint32_t> buffers;
    uint32_t last = no_staging_buffer;
    for (uint32_t i = 0; i < staging_buffers_per_arena; ++i) {
        last = take_staging_buffer(RingWidth::wide);
        REQUIRE(last < staging_buffers_per_arena);
        buffers.insert(last);
        StagingBuffer* const here = staging_buffer_of(mine.mailbox, last);
        StagingBuffer* const there = staging_buffer_of(seen, last);
        REQUIRE((here != nullptr && there != nullptr && here != there));
        REQUIRE((width_of_staging_buffer(last) == RingWidth::wide) == (i < wide_staging_buffers));
        here->small[small_ring.bytes() - 1] = static_cast<unsigned char>(i + 2);
        REQUIRE(there->small[small_ring.bytes() - 1] == i + 2);
        REQUIRE(give_large_slots(last));
        const size_t end = large_ring(width_of_staging_buffer(last), 2).bytes() - 1;
        here->large()[end] = static_cast<unsigned char>(i + 1);
        REQUIRE(there->large()[end] == i + 1);
        here->signals[1][2].round = 9;
    }
    REQUIRE(buffers.size() == staging_buffers_per_arena);
    REQUIRE(take_staging_buffer(RingWidth::wide) == no_staging_buffer);
    REQUIRE(staging_buffer_of(mine.mailbox, staging_buffers_per_arena) == nullptr);
    REQUIRE(staging_buffer_of(nullptr, 0) == nullptr);
    Peer closes(11);
    retire_mailbox(mine.mailbox, last, {{mine.mailbox, mine.token}, closes.entry()});
    REQUIRE(take_staging_buffer(RingWidth::wide) == no_staging_buffer);
    closes.mailbox.closed = 1;
    REQUIRE(take_staging_buffer(RingWidth::wide) == last);
    REQUIRE(staging_buffer_of(mine.mailbox, last)->signals[1][2].round == 0);
    return_staging_buffer(3);
    REQUIRE(take_staging_buffer(RingWidth::wide) == 3);
    release_arenas();
    REQUIRE(take_staging_buffer(RingWidth::wide) == no_staging_buffer);
}
