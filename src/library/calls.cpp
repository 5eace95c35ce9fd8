// SPDX-License-Identifier: BSD-3-Clause
// Names of the MPI functions.
#include "library/api/calls.hpp"

namespace vecmpi::library {

namespace {

#define VECMPI_CALL(call, name) #name,
constexpr const char* names[number_of_calls] = {
#include "library/api/mpi_calls.def"
};
#undef VECMPI_CALL

}  // namespace

const char* call_name(Call call) noexcept { return names[static_cast<size_t>(call)]; }

}  // namespace vecmpi::library
