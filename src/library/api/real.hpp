// SPDX-License-Identifier: BSD-3-Clause
// The MPI library's own functions, and which library it is.
#pragma once

#include <string>

#include "library/api/mpi_calls.hpp"
#include "library/api/mpi_real.hpp"

namespace vecmpi::library {

// Finds the MPI library among the loaded ones and fills `real`. served: it has the MPICH ABI.
struct BoundLibrary {
    bool found = false;
    bool served = false;
    std::string soname;
    void* handle = nullptr;
};
const BoundLibrary& bind_real_functions() noexcept;
std::string library_version();  // first line of MPI_Get_library_version, tabs as blanks

}  // namespace vecmpi::library
