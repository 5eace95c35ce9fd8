// SPDX-License-Identifier: BSD-3-Clause
// Where a vector is cut into segments. Pure: values in, values out, no MPI.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/api.hpp"

namespace vecmpi::pipeline {

struct SegmentFacts {
    Collective collective;
    uint64_t bytes = 0;    // of the vector
    int64_t elements = 0;  // that it may be cut between
    int ranks = 1;
    bool several_nodes = false;  // known to span nodes, the same on all ranks
};

// Segments in flight at once. Bounded, because the library walks all its schedules at each look.
constexpr unsigned segments_in_flight = 8;

// From here on `auto` cuts a collective on a communicator over several nodes (docs/schedules.md has
// figures).
uint64_t segments_from_bytes(Collective collective) noexcept;
// Number of segments of a vector, by the settings. 0: do not cut, and *why says so.
unsigned number_of_segments(const SegmentFacts& facts, const Settings& settings,
                            Counter* why) noexcept;

}  // namespace vecmpi::pipeline
