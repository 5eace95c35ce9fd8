// SPDX-License-Identifier: BSD-3-Clause
// The MPI functions as types, for templates that serve any of them. A part of the door that only
// such templates include.
#pragma once

#include "library/api/real.hpp"

namespace vecmpi::library {

// calls::Isend: its type Signature, its number `call`, its member `real_function` of `real`.
namespace calls {
#define VECMPI_CALL(name, name_in_mpi_h)                                                 \
    struct name {                                                                        \
        using Signature = decltype(RealFunctions::name);                                 \
        static constexpr Call call = Call::name;                                         \
        static constexpr Signature RealFunctions::*real_function = &RealFunctions::name; \
    };
#include "library/api/mpi_calls.def"
#undef VECMPI_CALL
}  // namespace calls

// A message that MPI_Improbe or MPI_Mprobe found: by value, because the program's variable may be
// gone when the call is issued that receives it. MPI_MESSAGE_NULL where there is no variable.
struct MatchedMessage {
    MPI_Message handle;
    MatchedMessage(const MPI_Message* message) noexcept
        : handle(message != nullptr ? *message : MPI_MESSAGE_NULL) {}
    operator MPI_Message*() noexcept { return &handle; }
};

// Parameters of an MPI function under the names that they have in mpi.h, arrays as pointers,
// without `request`: an aggregate of `members`, made of the
// arguments by of(). What posts operations has issue(mpi_request) as
// well, which calls the real function with them.
template <class Function>
struct Parameters;

}  // namespace vecmpi::library

namespace vecmpi {
namespace calls = library::calls;
}
