// SPDX-License-Identifier: BSD-3-Clause
// The MPI library's own functions, and which library it is.
#pragma once

#include <mpi.h>

#include <string>
#include <string_view>

#include "library/api/calls.hpp"
#include "library/api/mpi_later.hpp"

namespace vecmpi::library {

// The only way to call MPI from inside vecmpi. In the order of enum class Call. A member is null
// where the library lacks the function, but for those that large_counts.hpp completes.
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define VECMPI_CALL(call, name) decltype(&::name) call;
struct RealFunctions {
#include "library/api/mpi_calls.def"
};
#undef VECMPI_CALL
static_assert(sizeof(RealFunctions) == number_of_calls * sizeof(void (*)()));

// Written once by bind_real_functions(), before any entry leads here.
extern RealFunctions real;

// Finds the MPI library among the loaded ones and fills `real`. served: it has the
// ABI of this build.
struct BoundLibrary {
    bool found = false;
    bool served = false;
    std::string soname;
    void* handle = nullptr;
};
const BoundLibrary& bind_real_functions() noexcept;
bool library_has(Call call) noexcept;  // the function itself: a program may call it
// The file of vecmpi that serves libraries of this soname, where that is not this one; else "".
const char* build_for_other_abi(std::string_view soname) noexcept;
// Then that one serves what this one passes through.
bool other_build_is_preloaded() noexcept;
std::string library_version();  // first line of MPI_Get_library_version, tabs as blanks

}  // namespace vecmpi::library

namespace vecmpi {
using library::real;
}
