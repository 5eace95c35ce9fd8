// SPDX-License-Identifier: BSD-3-Clause
// Which calls stay with the library, so that the next one like it is not looked at again. Inside
// src/datatype only.
#pragma once

#include "datatype/api.hpp"

namespace vecmpi::datatype {

// A plan's gain in shorter transfers and calls of MPI-IO is less than what it takes to find it.
constexpr MPI_Count least_packed_bytes = 4096;

// It stays so while no handle goes. gone_before: handles_gone before the call was looked at.
void leave(const TypedCall& call, uint64_t gone_before) noexcept;

}  // namespace vecmpi::datatype
