// SPDX-License-Identifier: BSD-3-Clause
// Memory that the ranks of a node share. Each rank has one arena, which it alone writes and others
// map, whatever the number of its communicators. It has no name in a file system: nothing stays
// behind, and a small /dev/shm does not matter.
//
// Glossary
//   arena           one rank's shared memory; its first page holds the door of its process
//   mailbox         the part of an arena that serves one communicator
//   staging buffer  another part, for a communicator with larger data (staging_buffer.hpp)
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "pipeline/node/api/butterfly.hpp"
#include "staging_buffer.hpp"
#include "turn_board.hpp"

namespace vecmpi::pipeline::node {

constexpr size_t mailbox_bytes = 4096;
constexpr uint32_t mailboxes_per_arena = 256;
constexpr size_t door_bytes = 4096;
constexpr size_t mailboxes_bytes =
    door_bytes + mailbox_bytes * mailboxes_per_arena;  // and the door
// The first ones have room for a wide ring.
constexpr uint32_t staging_buffers_per_arena = 13, wide_staging_buffers = 4;
constexpr uint32_t no_staging_buffer = UINT32_MAX;
constexpr RingWidth width_of_staging_buffer(uint32_t index) noexcept {
    return index < wide_staging_buffers ? RingWidth::wide : RingWidth::narrow;
}
constexpr size_t staging_buffer_offset(uint32_t index) noexcept {
    const uint32_t wide = std::min(index, wide_staging_buffers);
    return mailboxes_bytes + wide * staging_buffer_bytes(RingWidth::wide) +
           (index - wide) * staging_buffer_bytes(RingWidth::narrow);
}
// Mapped as a whole. The file has pages for what was ever taken: mailboxes, staging buffers, their
// large slots.
constexpr size_t arena_bytes = staging_buffer_offset(staging_buffers_per_arena);
static_assert(arena_bytes <= size_t{12} << 20);

// Calls in which not every rank hears of every other one.
enum class OneWay : unsigned { reduce, bcast };
constexpr unsigned number_of_one_way = 2;

// A rank writes its own mailboxes only, but for the boards. All zeros at first. A call that the
// library refuses on one rank alone is as if not made. So kinds of calls that MPICH tells apart by
// tags have lines and sequence numbers of their own.
struct Mailbox {
    // That one rank needs for a run of the butterfly: 2048 ranks a node and more.
    static constexpr unsigned butterfly_lines = 12;
    // Reduces or Bcasts, one line each, before somebody has to look who has read them.
    static constexpr unsigned one_way_lines = 16;
    // Which communicator it serves now; random. Released last: whoever sees it sees a clear
    // mailbox.
    std::atomic<uint64_t> token;
    // This rank looks at nobody's mailbox of this communicator any more. Released.
    std::atomic<uint32_t> closed;
    // The last sequence number of each kind of which this rank has read all that it had to.
    // Released.
    alignas(64) std::atomic<uint64_t> finished[number_of_one_way];
    // Turns of trials, by collective: the first rank's boards are everybody's.
    alignas(64) TurnBoard turns[number_of_collectives];
    kernels::Line butterfly[butterfly_depth][butterfly_lines];
    kernels::Line one_way[number_of_one_way][one_way_lines];
};
static_assert(sizeof(Mailbox) <= mailbox_bytes);

// How others find an arena.
struct ArenaAddress {
    uint64_t inode = 0;
    int32_t process = 0, descriptor = -1;
};

// A mailbox that is in use: the own one, or a peer's.
struct MailboxOfRank {
    Mailbox* mailbox = nullptr;
    uint64_t token = 0;
};

// Makes the arena on first use. False where the system refuses it.
bool own_arena(ArenaAddress* address) noexcept;
// A mailbox of the own arena with a fresh token; null where all are in use. Any thread.
Mailbox* take_mailbox(uint32_t* index, uint64_t* token) noexcept;
// A mailbox that was not used, since not all ranks could.
void return_mailbox(Mailbox* own) noexcept;
// A staging buffer of the own arena, clear, of the width that is wanted if there is one left, with
// pages for its small slots; no_staging_buffer where all are in use or the system has no pages.
uint32_t take_staging_buffer(RingWidth wanted) noexcept;
// Pages for the large slots of one that was taken. False where the system has none.
bool give_large_slots(uint32_t own) noexcept;
void return_staging_buffer(uint32_t own) noexcept;  // one that was not used
// A staging buffer of the arena that this mailbox lies in.
StagingBuffer* staging_buffer_of(const Mailbox* mailbox, uint32_t index) noexcept;
// The door of the process whose arena this mailbox lies in.
Door* door_of(const Mailbox* mailbox) noexcept;
// The own mailbox, and the staging buffer if there is one, serve no communicator any more. They are
// free again once all peers have closed their mailboxes. Arenas that were mapped stay mapped. all:
// by rank, the own among them.
void retire_mailbox(Mailbox* own, uint32_t buffer, std::vector<MailboxOfRank> all) noexcept;

// Maps the arena of another process, or finds it mapped. Null where the system refuses, or where
// another arena lies there than the address says.
Mailbox* map_mailbox(const ArenaAddress& address, uint32_t index, uint64_t token) noexcept;

// After MPI_Finalize: nothing is used any more.
void release_arenas() noexcept;

}  // namespace vecmpi::pipeline::node
