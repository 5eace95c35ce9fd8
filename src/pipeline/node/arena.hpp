// SPDX-License-Identifier: BSD-3-Clause
// Memory that the ranks of a node share. Each rank has one arena, which it alone writes and others
// map, whatever the number of its communicators. It has no name in a file system: nothing stays
// behind, and a small /dev/shm does not matter.
//
// Glossary
//   arena   one rank's shared memory; its first page has the door of its process (base.hpp)
//   box     the part of an arena that serves one communicator
//   bay     another part, for a communicator with larger data (bay.hpp)
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "bay.hpp"
#include "pipeline/node/api/butterfly.hpp"

namespace vecmpi::pipeline::node {

constexpr size_t box_bytes = 4096;
constexpr uint32_t boxes_per_arena = 256;
constexpr size_t door_bytes = 4096;
constexpr size_t boxes_bytes = door_bytes + box_bytes * boxes_per_arena;  // and the door
constexpr uint32_t bays_per_arena = 13;
constexpr uint32_t no_bay = UINT32_MAX;
// Mapped as a whole; the file grows with the bays that were ever taken.
constexpr size_t arena_bytes = boxes_bytes + bay_bytes * bays_per_arena;
static_assert(arena_bytes <= size_t{4} << 20);

// Calls in which not every rank hears of every other one.
enum class OneWay : unsigned { reduce, bcast };
constexpr unsigned number_of_one_way = 2;

// A rank writes its own boxes only. All zeros at first. Calls that are refused on one rank alone
// are as if not made, so kinds of calls that MPICH tells apart by tags have lines and turns of
// their own.
struct Box {
    // Lines that one rank needs for a turn of the butterfly: 2048 ranks a node and more.
    static constexpr unsigned butterfly_lines = 12;
    // Turns of a Reduce or Bcast, one line each, before somebody has to look who has read them.
    static constexpr unsigned one_way_turns = 16;
    // Which communicator it serves now; random. Released last: who sees it sees a box that is
    // clear.
    std::atomic<uint64_t> token;
    // This rank looks at nobody's box of this communicator any more. Released.
    std::atomic<uint32_t> closed;
    // The last turn of each kind of which this rank has read all that it had to. Released.
    alignas(64) std::atomic<uint64_t> finished[number_of_one_way];
    kernels::Line butterfly[butterfly_depth][butterfly_lines];
    kernels::Line one_way[number_of_one_way][one_way_turns];
};
static_assert(sizeof(Box) <= box_bytes);

// How others find an arena.
struct ArenaAddress {
    uint64_t inode = 0;
    int32_t process = 0, descriptor = -1;
};

// A box of this rank's own arena that is in use, and those of its peers.
struct BoxOfRank {
    Box* box = nullptr;
    uint64_t token = 0;
};

// Makes the arena on first use. False where the system refuses it.
bool own_arena(ArenaAddress* address) noexcept;
// A box of the own arena with a fresh token; null where all are in use. Any thread.
Box* take_box(uint32_t* index, uint64_t* token) noexcept;
// A box that was not used, since not all ranks could.
void return_box(Box* own) noexcept;
// A bay of the own arena, clear; no_bay where all are in use or the system has no pages for it.
uint32_t take_bay() noexcept;
void return_bay(uint32_t own) noexcept;  // one that was not used
// A bay of the arena that this box lies in.
Bay* bay_beside(const Box* box, uint32_t index) noexcept;
// The door of the process whose arena this box lies in.
Door* door_beside(const Box* box) noexcept;
// The own box, and the bay if there is one, serve no communicator any more; they come back once all
// peers have closed their boxes. Peers that were mapped stay mapped. all: by rank, the own among
// them.
void retire_box(Box* own, uint32_t bay, std::vector<BoxOfRank> all) noexcept;

// Maps the arena of another process, or finds it mapped. Null where the system refuses, or where
// another arena lies there than the address says.
Box* map_box(const ArenaAddress& address, uint32_t index, uint64_t token) noexcept;

// After MPI_Finalize: nothing is used any more.
void release_arenas() noexcept;

}  // namespace vecmpi::pipeline::node
