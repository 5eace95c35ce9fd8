// SPDX-License-Identifier: BSD-3-Clause
// Definitions of a symbol outside this library. Not a door: src/intercept only.
#pragma once

#include <cstdint>

namespace vecmpi {

// The next definition in the loader's order, or one in a library that came with RTLD_LOCAL, such as
// MPI_Status_c2f08 in MPICH's Fortran library; null where there is none. Never loads anything.
void* defined_elsewhere(const char* symbol) noexcept;

// What a caller would have reached without this library, and where its object lies in memory. Keeps
// the definition loaded.
struct CallersChoice {
    void* address = nullptr;
    uintptr_t begin = 0, end = 0;
};
CallersChoice definition_for(uintptr_t caller, const char* symbol) noexcept;

// Do both addresses lie in the same loaded object?
bool in_one_object(const void* one, const void* other) noexcept;

}  // namespace vecmpi
