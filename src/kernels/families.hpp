// SPDX-License-Identifier: BSD-3-Clause
// The families of kernels, one source file each, and their common signature. Each source is
// compiled for every instruction set; what is declared here is baseline code.
#pragma once

#include "kernels/api.hpp"

namespace vecmpi::kernels {

// Returns null pointers where the family has no such kernel.
using FamilyLookup = ReduceKernel (*)(ReduceOp op, ElementType type) noexcept;

constexpr size_t number_of_isas = 6;

using Family = ReduceFamily;

// Lookups by Isa; null where the family is not compiled for it.
extern const FamilyLookup arithmetic_by_isa[number_of_isas];  // MAX MIN SUM PROD, 8 bits to double
extern const FamilyLookup half_by_isa[number_of_isas];        // the same of float16 and bfloat16
extern const FamilyLookup logical_by_isa[number_of_isas];     // LAND BAND LOR BOR LXOR BXOR
extern const FamilyLookup complex_by_isa[number_of_isas];     // SUM PROD
extern const FamilyLookup pairs_by_isa[number_of_isas];       // MINLOC MAXLOC

// Plain loops in baseline code for every legal pair: used where no vectors may be, and for long
// double.
ReduceKernel scalar_kernel(ReduceOp op, ElementType type) noexcept;

}  // namespace vecmpi::kernels
