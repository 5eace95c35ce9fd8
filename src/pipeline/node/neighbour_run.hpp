// SPDX-License-Identifier: BSD-3-Clause
// One exchange of blocks between neighbours, through their staging buffers. A rank waits for its
// neighbours alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "neighbourhood.hpp"
#include "staging_buffer.hpp"

namespace vecmpi::pipeline::node {

class StagedCollectives;

// In a slot of the first round, before its parts. What is behind the first bytes of blocks goes in
// rounds that each rank counts for itself, as in gathered_blocks.cpp. The small ring's signal
// `fetched` says that a rank has read in its round what is read at once.
struct NeighbourHeader {
    uint64_t given, fetched;  // rounds so far
    uint64_t has_read;        // all that was to be read at once; before that it is undefined
};
// Before the first bytes of a block.
struct NeighbourAnnouncement {
    uint64_t bytes, address;  // of the block
};
constexpr int most_neighbour_parts = static_cast<int>(
    (small_ring.slot_bytes - sizeof(NeighbourHeader)) / sizeof(NeighbourAnnouncement));
constexpr size_t first_part_bytes(int parts) noexcept {
    return part_bytes_of(small_ring.slot_bytes, sizeof(NeighbourHeader), parts);
}
// Of a block, in the first round.
constexpr size_t first_bytes_of(int parts) noexcept {
    return first_part_bytes(parts) - sizeof(NeighbourAnnouncement);
}
// In a round after it, by the large ring's slots.
constexpr size_t next_part_bytes(size_t slot_bytes, int parts) noexcept {
    return part_bytes_of(slot_bytes, 0, parts);
}
static_assert(first_part_bytes(most_neighbour_parts) == sizeof(NeighbourAnnouncement));

class NeighbourRun {
  public:
    // given and taken of hood: the blocks, which may be nowhere. edges: of hood. has_parts: each
    // neighbour gets a block of its own, else all get the first one.
    NeighbourRun(StagedCollectives& staged, Neighbourhood& hood,
                 const std::vector<EdgeSource>& edges, bool has_parts) noexcept;
    // When it returns all is taken, and nobody reads what was given. The blocks of hood.taken are
    // as long as what came. False: more came than one had room for.
    bool run() noexcept;

  private:
    MovedBlock given(size_t edge) const noexcept;
    bool goes_to_another(size_t edge) const noexcept;
    int parts_of(const EdgeSource& edge) const noexcept { return has_parts_ ? edge.parts : 1; }
    size_t part_of(const EdgeSource& edge) const noexcept {
        return has_parts_ ? static_cast<size_t>(edge.part) : 0;
    }
    void announce() noexcept;
    bool take_own(const EdgeSource& edge, MovedBlock& block) noexcept;
    bool take_first(const EdgeSource& edge, MovedBlock& block, RestOfEdge& rest) noexcept;
    bool take_first_parts() noexcept;
    bool read(size_t edge) noexcept;
    void set_rounds(RestOfEdge& rest, int parts, bool has_read) const noexcept;
    void read_at_once() noexcept;
    void note_readers() noexcept;
    void give(uint64_t k) noexcept;
    void take(uint64_t k) noexcept;
    void begin_giving() noexcept;
    void copy_rest(bool has_begun) noexcept;

    StagedCollectives& staged_;
    Neighbourhood& hood_;
    const std::vector<EdgeSource>& edges_;
    SlotRing &small_, &large_;
    const int me_, parts_;  // of the own slots
    const bool has_parts_;
    const uint64_t round_;
};

}  // namespace vecmpi::pipeline::node
