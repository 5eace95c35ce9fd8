// SPDX-License-Identifier: BSD-3-Clause
// The neighbours that a communicator's topology gives a rank (MPI 4.0, 8.6), and how the blocks for
// them lie in slots.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "movement.hpp"

namespace vecmpi::pipeline::node {

struct Degrees {
    int in = 0, out = 0;
};
// Of this rank. Nothing where the communicator has no topology: the library refuses the calls.
std::optional<Degrees> degrees_of(MPI_Comm comm) noexcept;

// Which block comes by an incoming edge: number `part` of the `parts` that its source gives.
struct EdgeSource {
    int rank = MPI_PROC_NULL;  // stays so where nobody is
    int part = 0, parts = 0;
};

// What of an edge's block the first round leaves.
struct RestOfEdge {
    uint64_t address = 0;  // of an incoming one, at its source
    uint64_t bytes = 0;
    uint64_t base = 0;    // of the other rank's rounds, as it counts them, before this call's
    uint64_t rounds = 0;  // in which it is copied; 0: it is read at once
};

// Edges are in the order of the topology.
struct Neighbourhood {
    std::vector<int> sources, destinations;  // ranks; MPI_PROC_NULL: nobody
    // By incoming edge. Only where two edges join the same two ranks do they differ.
    std::vector<EdgeSource> of_alltoall, of_vectors;
    // Of the call under way. A call that gives all the same has one block.
    std::vector<MovedBlock> given, taken;
    std::vector<RestOfEdge> rest_given, rest_taken;

    Degrees degrees() const noexcept {
        return {static_cast<int>(sources.size()), static_cast<int>(destinations.size())};
    }
};

// Collective over comm, which has a topology; blocking, inside a DirectCall. Null on all ranks
// where one cannot, or has more neighbours than a slot has parts.
std::unique_ptr<Neighbourhood> learn_neighbourhood(MPI_Comm comm) noexcept;

// What came by the library fits what it says of the topology.
bool are_of(const std::vector<EdgeSource>& edges, const std::vector<int>& sources) noexcept;

// So many parts of equal length, behind a header.
constexpr size_t part_bytes_of(size_t slot_bytes, size_t header_bytes, int parts) noexcept {
    return (slot_bytes - header_bytes) / static_cast<size_t>(parts) / 8 * 8;
}
constexpr uint64_t rounds_for(size_t bytes, size_t part_bytes) noexcept {
    return (bytes + part_bytes - 1) / part_bytes;
}

}  // namespace vecmpi::pipeline::node
