// SPDX-License-Identifier: BSD-3-Clause
// Facts of a call's arguments. Asks the library, moves no data.
#include "calls.hpp"

namespace vecmpi {

namespace {

// Found out by packing nothing: the library itself refuses a type that is not committed, before any
// rank waits.
bool is_committed(MPI_Datatype type, MPI_Comm comm) noexcept {
    if ((static_cast<unsigned>(type) >> 26) == 0x13u) return true;
    char nothing = 0;
    int position = 0;
    const QuietErrors question;
    return real.Pack(&nothing, 0, type, &nothing, 0, &position, comm) == MPI_SUCCESS;
}

}  // namespace

int out_of_memory(MPI_Comm comm) noexcept {
    real.Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
}

bool is_valid_type(MPI_Datatype type) noexcept {
    const auto value = static_cast<unsigned>(type);
    return (value >> 30) != 0 && ((value >> 26) & 0xfu) == 3;
}

MPI_Count size_of(MPI_Datatype type) noexcept {
    MPI_Count bytes = 0;
    real.Type_size_x(type, &bytes);
    return bytes;
}

TypeShape shape_of(MPI_Datatype type) noexcept {
    TypeShape shape;
    MPI_Count lower_bound = 0;
    real.Type_size_x(type, &shape.bytes);
    real.Type_get_extent_x(type, &lower_bound, &shape.extent);
    shape.builtin = (static_cast<unsigned>(type) >> 26) == 0x13u;
    return shape;
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

bool is_refused(const void* buffer, MPI_Count count, MPI_Datatype type) noexcept {
    if (buffer != nullptr || count == 0) return false;
    if (shape_of(type).builtin) return true;
    MPI_Count lower_bound = 0, extent = 0;
    real.Type_get_true_extent_x(type, &lower_bound, &extent);
    return lower_bound == 0;
}

bool is_refused_output(const void* buffer, MPI_Count count, MPI_Datatype type) noexcept {
    return (buffer == MPI_IN_PLACE && count != 0) || is_refused(buffer, count, type);
}

bool may_be_refused(const CommTraits& traits, MPI_Datatype type, MPI_Comm comm) noexcept {
    return traits.handler != CommTraits::Handler::fatal && !is_committed(type, comm);
}

std::optional<CommTraits> traits_to_cut(MPI_Comm comm, MPI_Datatype type,
                                        MPI_Count count) noexcept {
    const auto comm_bits = static_cast<unsigned>(comm);
    if (is_reentrant() || !engine_runs() || count < 0 || !is_valid_type(type)) return std::nullopt;
    if ((comm_bits >> 30) == 0 || ((comm_bits >> 26) & 0xfu) != 1) return std::nullopt;
    const CommTraits traits = comm_traits(comm);
    if (!traits.inter && traits.world_only) {
        if (may_be_refused(traits, type, comm)) return std::nullopt;
        return traits;
    }
    vecmpi::count(Counter::decline_foreign);
    return std::nullopt;
}

}  // namespace vecmpi
