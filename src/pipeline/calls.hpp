// SPDX-License-Identifier: BSD-3-Clause
// What the collectives of this folder share: facts of a call's arguments.
#pragma once

#include <optional>

#include "vecmpi/offload.hpp"

namespace vecmpi {

// Out of memory after all ranks agreed to cut: this rank cannot leave alone, so the program's error
// handler decides.
int out_of_memory(MPI_Comm comm) noexcept;

bool is_user_op(MPI_Op op) noexcept;  // made by MPI_Op_create
bool is_commutative(MPI_Op op) noexcept;

// MPI_BOTTOM is null, and moves like any other buffer.
inline void* advanced(const void* buffer, MPI_Count bytes) noexcept {
    if (buffer == MPI_IN_PLACE) return MPI_IN_PLACE;
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(buffer) +
                                   static_cast<uintptr_t>(bytes));
}

// Facts that every collective of ours needs of its communicator; nothing where it cannot be cut at
// all.
std::optional<CommTraits> traits_to_cut(MPI_Comm comm, MPI_Datatype type, MPI_Count count) noexcept;
// Of a second type of the call: may the library refuse it, and the program see that?
bool may_be_refused(const CommTraits& traits, MPI_Datatype type, MPI_Comm comm) noexcept;

}  // namespace vecmpi
