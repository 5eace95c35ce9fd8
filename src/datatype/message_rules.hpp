// SPDX-License-Identifier: BSD-3-Clause
// What decides whether a message of a derived datatype goes packed, be it blocking or not. Inside
// src/datatype only.
#pragma once

#include <optional>

#include "plan_making.hpp"

namespace vecmpi::datatype {

// Some messages are packed by UCX, and some by the library: within a node, where it has memory of
// its own there.
inline bool ucx_packs_some() noexcept { return library::has_trait(library::Trait::message_types); }
inline bool library_packs_some() noexcept {
    return !ucx_packs_some() || library::has_trait(library::Trait::own_memory);
}
// Who packs those of this communicator?
bool ucx_packs(MPI_Comm comm) noexcept;

// A message whose sender has bytes may reach the receiver in pieces that end within a value, where
// MPICH 4.0.2 over UCX and MPICH 5.0.2 fail to unpack it by a type. So only what surely comes in
// one piece is sent as bytes: the receiver may not have us, or no plan. On a node UCX sends 8256
// bytes at once, headers included; an old InfiniBand link 2 KiB. Values of one predefined type are
// sent as such, of any length: that is what a program does that packs by hand.
MPI_Count most_sent_as_bytes(MPI_Comm comm) noexcept;

// A null address is MPI_BOTTOM, or an error that the library is to find. kept: null or the type's.
bool is_refused(const void* memory, MPI_Datatype type, const KeptPlan* kept) noexcept;

// Without UCX, after the trial: what plan and library take for a byte. Nothing where the library
// has won. On a node it packs a longer message in pieces, whatever it takes for all at once.
std::optional<Trial::Times> times_of_plan_that_wins(const KeptPlan& kept,
                                                    kernels::Direction direction, MPI_Count bytes,
                                                    MPI_Comm comm) noexcept;

// Who packs such messages of the type in that way stays so while its handle lives.
bool is_settled(const KeptPlan* kept, PackedIn way, kernels::Direction direction, MPI_Count bytes,
                MPI_Datatype type) noexcept;

// In the report, a message that the library moves by its type.
void count_left(const KeptPlan* kept, kernels::Direction direction, MPI_Count bytes,
                MPI_Datatype type) noexcept;

}  // namespace vecmpi::datatype
