// SPDX-License-Identifier: BSD-3-Clause
// "external32" (MPI 4.0, 14.5.2) as the running library has it, not as the standard says. Inside
// src/datatype and its tests only.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "kept_plan.hpp"

namespace vecmpi::datatype {

// A predefined type that every known library packs by reversing bytes.
struct ExternalValue;
// Null: any other type. No library is asked about these: some end the program.
const ExternalValue* external_value(MPI_Datatype predefined) noexcept;
// How many bytes the library reverses at a time: 1, 2, 4, 8 or 16. 0: it does something else. The
// first call asks the library. Only for a type of which it has packed values in this form: so none
// is asked that would not have come to it.
size_t reversed_width(const ExternalValue& value) noexcept;

// The plan of the predefined type itself, which is dense; null: none yet, or not to be made.
const KeptPlan* plan_of_value(const ExternalValue& value) noexcept;
// After the library has packed values of it. They need not be reversed: MPICH 4.0.2 copies chars
// one by one.
void make_plan_of_value(const ExternalValue& value) noexcept;
// After MPI_Finalize: all that was learnt.
void forget_external_values() noexcept;

// Pure. Does `packed` hold the bytes of `memory`, each `width` of them reversed?
bool is_reversed(const unsigned char* packed, const unsigned char* memory, size_t bytes,
                 size_t width) noexcept;

}  // namespace vecmpi::datatype
