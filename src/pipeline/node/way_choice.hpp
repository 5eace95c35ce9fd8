// SPDX-License-Identifier: BSD-3-Clause
// Which way large data take on this node: by bays, in one copy, or by the library; by trying all.
#pragma once

#include <mpi.h>

#include <array>
#include <optional>

#include "bays.hpp"

namespace vecmpi::pipeline::node {

enum class LargeKind : uint8_t { allreduce, reduce, reduce_scatter, bcast, allgather };
constexpr size_t number_of_large_kinds = 5;

// Sizes that are tried; each stands for what lies between it and the next. Below the first: in
// rounds.
constexpr std::array<size_t, 3> tried_bytes = {size_t{64} << 10, size_t{256} << 10,
                                               size_t{1} << 20};

enum class Candidate : uint8_t { in_rounds, in_one_copy, library };
constexpr size_t number_of_candidates = 3;
// Seconds of one operation, by candidate; one that was not tried takes for ever.
using TriedTimes = std::array<double, number_of_candidates>;
// Ours unless the library is clearly faster, in rounds unless one copy is faster. Pure.
Candidate fastest(const TriedTimes& times) noexcept;

// By size, of one kind.
struct LargeChoice {
    std::array<Candidate, tried_bytes.size()> at{};
    Candidate of(size_t bytes) const noexcept;
};

// Collective over the bays' ranks, which are those of comm, inside a DirectCall. What the first
// rank knows of this kind, from another communicator of so many ranks or from the host's profile,
// holds for all; else some milliseconds of trying. library: it is a candidate. Without memory to
// try, in rounds.
LargeChoice choose_ways(Bays& bays, MPI_Comm comm, LargeKind kind, bool library) noexcept;

}  // namespace vecmpi::pipeline::node
