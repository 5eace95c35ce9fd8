// SPDX-License-Identifier: BSD-3-Clause
// Memory that the ranks of a node share. Each rank has one arena, which it alone writes and others
// map, whatever the number of its communicators. It has no name in a file system: nothing stays
// behind, and a small /dev/shm does not matter.
//
// Glossary
//   arena   one rank's shared memory
//   box     the part of an arena that serves one communicator
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "vecmpi/kernels.hpp"

namespace vecmpi {

constexpr size_t box_bytes = 4096;
constexpr uint32_t boxes_per_arena = 256;
constexpr size_t arena_bytes = box_bytes * boxes_per_arena;

// A rank writes its own boxes only. All zeros at first.
struct Box {
    static constexpr unsigned line_sets = 4;       // turns whose lines can be told apart
    static constexpr unsigned lines_of_turn = 12;  // of one rank: 2048 ranks a node and more
    // Which communicator it serves now; random. Released last: who sees it sees a box that is
    // clear.
    std::atomic<uint64_t> token;
    // This rank looks at nobody's box of this communicator any more. Released.
    std::atomic<uint32_t> closed;
    // The last turn of which this rank has read all that it had to. Released.
    alignas(64) std::atomic<uint64_t> finished;
    Line lines[line_sets][lines_of_turn];
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
// The own box serves no communicator any more; it comes back once all peers have closed theirs.
// Peers that were mapped stay mapped. all: by rank, the own among them.
void retire_box(Box* own, std::vector<BoxOfRank> all) noexcept;

// Maps the arena of another process, or finds it mapped. Null where the system refuses, or where
// another arena lies there than the address says.
Box* map_box(const ArenaAddress& address, uint32_t index, uint64_t token) noexcept;

// Before MPI_Finalize: nothing is used any more.
void release_arenas() noexcept;

}  // namespace vecmpi
