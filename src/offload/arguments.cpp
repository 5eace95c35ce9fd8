// SPDX-License-Identifier: BSD-3-Clause
// What can be said of a call's arguments. Moves no data.
#include "offload/api.hpp"

namespace vecmpi::offload {
namespace {

constinit std::atomic<bool> refuses_aliases{true};

}  // namespace

MPI_Count size_of_derived(MPI_Datatype type) noexcept {
    MPI_Count bytes = 0;
    real.Type_size_x(type, &bytes);
    return bytes;
}

TypeShape shape_of(MPI_Datatype type) noexcept {
    TypeShape shape;
    MPI_Count lower_bound = 0;
    shape.bytes = size_of(type);
    real.Type_get_extent_x(type, &lower_bound, &shape.extent);
    shape.builtin = library::is_builtin_type(type);
    return shape;
}

bool is_derived_committed(MPI_Datatype type, MPI_Comm comm) noexcept {
    char nothing = 0;
    int position = 0;
    const library::QuietErrors question;
    return real.Pack(&nothing, 0, type, &nothing, 0, &position, comm) == MPI_SUCCESS;
}

bool is_null_refused(MPI_Datatype type) noexcept {
    if (library::is_builtin_type(type)) return true;
    MPI_Count lower_bound = 0, extent = 0;
    real.Type_get_true_extent_x(type, &lower_bound, &extent);
    return lower_bound == 0 && size_of_derived(type) > 0;
}

bool aliases_are_refused() noexcept { return refuses_aliases.load(std::memory_order_relaxed); }

// MPICH compares the arrays of counts, not what stands in them: it refuses this although there is
// nothing to move. (Of one element a library that does not look copies it to itself, and aborts.)
void ask_about_aliases() noexcept {
    int buffer = 0, none = 0;
    const library::LoudQuestion handlers;
    const library::QuietErrors question;
    const int answer = real.Alltoallv(&buffer, &none, &none, MPI_INT, &buffer, &none, &none,
                                      MPI_INT, MPI_COMM_SELF);
    refuses_aliases.store(answer != MPI_SUCCESS, std::memory_order_relaxed);
}

}  // namespace vecmpi::offload
