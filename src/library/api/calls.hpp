// SPDX-License-Identifier: BSD-3-Clause
// Names and numbers of the MPI functions. Says nothing about how they are served.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vecmpi::library {

// Every function of mpi.h; `Send_c` is MPI_Send_c, `T_...` is MPI_T_..., `X_...` is MPIX_...
#define VECMPI_CALL(call, name) call,
enum class Call : uint16_t {
#include "library/api/mpi_calls.def"
};
#undef VECMPI_CALL

#define VECMPI_CALL(call, name) +1  // NOLINT(bugprone-macro-parentheses): a row of a sum
constexpr size_t number_of_calls = 0
#include "library/api/mpi_calls.def"
    ;
#undef VECMPI_CALL

// Name as in mpi.h, such as "MPI_Send".
const char* call_name(Call call) noexcept;

}  // namespace vecmpi::library

namespace vecmpi {
using library::Call;
}
