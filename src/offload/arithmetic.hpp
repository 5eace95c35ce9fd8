// SPDX-License-Identifier: BSD-3-Clause
// Inside src/offload and its tests: which kernel stands for a predefined op on a predefined type.
#pragma once

#include "kernels/api.hpp"
#include "library/api.hpp"

namespace vecmpi::offload {

// By type_index(): the type's handle, or MPI_DATATYPE_NULL where no kernel serves it (MPI_REAL16,
// derived types), and what it holds. C, C++ and Fortran names of a type lead to one kind of
// element.
struct TypeTable {
    MPI_Datatype type[library::type_indices];
    kernels::ElementType element[library::type_indices];
};
extern const TypeTable reducible_types;

// Values on which a kernel is compared with the library's function: every pair of the special
// values of each lane (zeros, infinities, NaN with payload, denormals, extremes), ties, and any
// bits. bytes: a multiple of the element's size. Pure.
void fill_with_probes(void* buffer, size_t bytes, MPI_Datatype type, uint32_t seed) noexcept;

// Finds the library's table and puts our functions into it. Once, from start_engine().
// others_are_inside: threads may be reducing, in a session; the table cannot be proved then.
void adopt_arithmetic(const library::BoundLibrary& library, bool others_are_inside) noexcept;

}  // namespace vecmpi::offload
