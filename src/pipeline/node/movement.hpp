// SPDX-License-Identifier: BSD-3-Clause
// Which blocks of bytes move between which ranks in a collective that reduces nothing. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vecmpi::pipeline::node {

// Which ranks give blocks to which. to_root: each other rank one to the root. from_root: the root
// one to each other rank. to_all: each rank the same one to all others. pairs: each rank one to
// each other one.
enum class Flow : uint8_t { to_root, from_root, to_all, pairs };
struct BlockMovement {
    Flow flow = Flow::to_all;
    int root = 0;  // of the first two

    bool has_root() const noexcept { return flow == Flow::to_root || flow == Flow::from_root; }
    bool gives(int rank) const noexcept {
        return !has_root() || (rank == root) == (flow == Flow::from_root);
    }
    bool takes(int rank) const noexcept {
        return !has_root() || (rank == root) == (flow == Flow::to_root);
    }
    // Whoever gives has another block for each reader.
    bool has_parts() const noexcept { return flow == Flow::from_root || flow == Flow::pairs; }
};

// A block may be nowhere: null.
struct MovedBlock {
    unsigned char* place = nullptr;
    size_t bytes = 0;
};

}  // namespace vecmpi::pipeline::node
