// SPDX-License-Identifier: BSD-3-Clause
// Facts of a call's arguments. Asks the library, moves no data.
#include "call_facts.hpp"

namespace vecmpi::pipeline {

int out_of_memory(MPI_Comm comm) noexcept {
    real.Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
}

// A handle of kind direct or indirect.
bool is_user_op(MPI_Op op) noexcept {
    const auto value = static_cast<unsigned>(op);
    return (value >> 30) >= 2 && ((value >> 26) & 0xfu) == 6;
}

bool is_commutative(MPI_Op op) noexcept {
    int commutes = 0;
    return real.Op_commutative(op, &commutes) == MPI_SUCCESS && commutes != 0;
}

bool spans_world(const offload::CommTraits& traits) noexcept {
    if (offload::agreement().one_node) return false;
    int world = 0;
    real.Comm_size(MPI_COMM_WORLD, &world);
    return traits.size == world;
}

bool may_be_refused(const offload::CommTraits& traits, MPI_Datatype type, MPI_Comm comm) noexcept {
    return traits.handler != offload::CommTraits::Handler::fatal &&
           !offload::is_committed(type, comm);
}

std::optional<offload::CommTraits> traits_to_cut(MPI_Comm comm, MPI_Datatype type, MPI_Count count,
                                                 Decline& decline) noexcept {
    // An error handler that the engine's thread calls cannot wait for that thread.
    if (offload::is_offload_thread() || !offload::engine_runs() || count < 0 ||
        !library::is_type_handle(type))
        return std::nullopt;
    if (!library::is_comm_handle(comm)) return std::nullopt;
    const offload::CommTraits traits = offload::comm_traits(comm);
    if (!traits.inter && traits.world_only) {
        if (may_be_refused(traits, type, comm)) return std::nullopt;
        return traits;
    }
    decline.note(Counter::decline_foreign);
    return std::nullopt;
}

}  // namespace vecmpi::pipeline
