// SPDX-License-Identifier: BSD-3-Clause
// Blocking collectives over several nodes on which ranks share memory.
#pragma once

#include "candidate.hpp"

namespace vecmpi::pipeline {

// Of comm, for a call whose data are few or none. Made after some blocking calls; in callbacks of
// MPI_Finalize it serves them on. Null: there is none. The same on all ranks.
PrivateCommPointer comm_of_small_call(const CollectiveForm& form, MPI_Comm comm) noexcept;

// MPI_Barrier, and MPI_Allreduce up to NodeTeam::most_small_bytes: through the node's memory to its
// first rank, between these by the library, and back. A trial with the library's own call decides.
// Nothing: not served.
std::optional<int> barrier_over_nodes(CollectiveCall& call, PrivateComm& own) noexcept;
std::optional<int> small_allreduce_over_nodes(CollectiveCall& call, const void* sendbuf,
                                              void* recvbuf, MPI_Count count,
                                              MPI_Datatype type) noexcept;

// For the hierarchical algorithm. Each rank of a node carries a slice of a segment over the
// network, while the next segment is reduced. Nothing: it is to be run as a schedule.
std::optional<int> allreduce_by_slices(const CollectiveCall& call, const Candidate& by,
                                       const Operands& what) noexcept;

}  // namespace vecmpi::pipeline
