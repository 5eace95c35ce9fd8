// SPDX-License-Identifier: BSD-3-Clause
// Blocking collectives of ranks of which several share a node: what can be done in the node's
// memory is done there.
#pragma once

#include "offer.hpp"

namespace vecmpi::pipeline {

// MPI_Barrier, and MPI_Allreduce up to NodeTeam::most_small_bytes: to the first rank of each node
// through the node's memory, between these by the library, and back. Nothing: not served.
std::optional<int> barrier_over_nodes(Call call, MPI_Comm comm) noexcept;
std::optional<int> small_allreduce_over_nodes(Call call, const void* sendbuf, void* recvbuf,
                                              MPI_Count count, MPI_Datatype type, MPI_Op op,
                                              MPI_Comm comm) noexcept;

// An offer of the hierarchical algorithm, in segments: while one crosses the network, each rank of
// a node its slice, the next is reduced. Nothing: the offer is to be run as a schedule.
std::optional<int> allreduce_by_slices(Call call, const Offer& offer, const Operands& what,
                                       MPI_Comm comm) noexcept;

}  // namespace vecmpi::pipeline
