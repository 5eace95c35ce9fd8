// SPDX-License-Identifier: BSD-3-Clause
// Inside src/offload and its tests: which kernel stands for a predefined op on a predefined type.
#pragma once

#include "kernels/api.hpp"
#include "library/api.hpp"

namespace vecmpi::offload {

// By type_index(): the type's handle and its element, or MPI_DATATYPE_NULL where no kernel serves
// it (MPI_REAL16, derived types). C, C++ and Fortran names of a type lead to one kind of element.
struct TypeTable {
    MPI_Datatype type[library::type_indices];
    kernels::ElementType element[library::type_indices];
};
extern const TypeTable reducible_types;

// Values on which a kernel is compared with the library's function: every pair of each lane's
// special values (zeros, infinities, NaN with payload, denormals, extremes), ties, and random bits.
// bytes: a multiple of the element's size. Pure.
void fill_with_probes(void* buffer, size_t bytes, MPI_Datatype type, uint32_t seed) noexcept;

inline kernels::ReduceOp kernel_op(MPI_Op op) noexcept {
    return static_cast<kernels::ReduceOp>(library::op_index(op) - library::first_op);
}

// Finds the library's table and puts our functions into it. Once, from start_engine().
// others_are_inside: threads of a session may be reducing, so that the table cannot be proved.
void adopt_arithmetic(const library::BoundLibrary& library, bool others_are_inside) noexcept;

}  // namespace vecmpi::offload
