// SPDX-License-Identifier: BSD-3-Clause
// By which transport large data move on this node: each is tried, and the fastest is taken.
#pragma once

#include <mpi.h>

#include <array>

#include "base/api/profile.hpp"
#include "staged_collectives.hpp"

namespace vecmpi::pipeline::node {

// Each size stands for what lies between it and the next. Smaller data are always copied in and
// out.
constexpr std::array<size_t, number_of_node_sizes> tried_bytes = {
    size_t{64} << 10, size_t{256} << 10, size_t{1} << 20};
// Which of them decides on so many bytes.
Transport transport_of(const TransportsBySize& choice, size_t bytes) noexcept;

// Seconds of one operation, by transport; infinity: not tried.
using TriedTimes = std::array<double, number_of_transports>;
// Pure. The library must be clearly faster than ours, and single copy faster than two copies.
Transport fastest(const TriedTimes& times) noexcept;

// Collective over the ranks of comm, which are those of `staged`, inside a DirectCall. The first
// rank decides for all: by what it found on another communicator of so many ranks, by the host's
// profile, or by a trial of some milliseconds. may_be_library: the library takes part in that.
// Without memory for a trial data are copied in and out.
TransportsBySize choose_transports(StagedCollectives& staged, MPI_Comm comm, Collective collective,
                                   bool may_be_library) noexcept;

}  // namespace vecmpi::pipeline::node
