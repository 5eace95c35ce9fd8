// SPDX-License-Identifier: BSD-3-Clause
// What the library says first of a datatype's description. Inside src/datatype only.
#pragma once

#include "library/api.hpp"

namespace vecmpi::datatype {

struct Envelope {
    MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
    int combiner = MPI_COMBINER_NAMED;
};

inline bool is_predefined(int combiner) noexcept {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

// False: the library refuses.
inline bool read_envelope(MPI_Datatype type, Envelope& envelope) noexcept {
    return real.Type_get_envelope_c(type, &envelope.integers, &envelope.addresses, &envelope.counts,
                                    &envelope.types, &envelope.combiner) == MPI_SUCCESS;
}

inline bool read_size(MPI_Datatype type, MPI_Count* size, MPI_Count* extent) noexcept {
    MPI_Count lower_bound = 0;
    return real.Type_size_x(type, size) == MPI_SUCCESS &&
           real.Type_get_extent_x(type, &lower_bound, extent) == MPI_SUCCESS;
}

// A value larger than a double may be a long double, which has bytes that nobody copies.
inline bool may_have_padding(int combiner, MPI_Count size) noexcept {
    constexpr MPI_Count double_bytes = 8;
    return (combiner == MPI_COMBINER_F90_REAL && size > double_bytes) ||
           (combiner == MPI_COMBINER_F90_COMPLEX && size > 2 * double_bytes);
}

// A handle that came with a description. Predefined types must not be freed.
inline void give_back(MPI_Datatype handle) noexcept {
    Envelope envelope;
    if (handle == MPI_DATATYPE_NULL || library::is_builtin_type(handle)) return;
    if (read_envelope(handle, envelope) && !is_predefined(envelope.combiner))
        real.Type_free(&handle);
}

}  // namespace vecmpi::datatype
