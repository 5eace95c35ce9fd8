// SPDX-License-Identifier: BSD-3-Clause
// The form in which a program asks for a collective.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "library/api.hpp"

namespace vecmpi::pipeline {

struct CollectiveForm {
    enum class Kind : uint8_t { blocking, nonblocking, persistent };
    Call call;
    Kind kind = Kind::blocking;
    MPI_Request* request = nullptr;  // nonblocking, persistent

    bool is_blocking() const noexcept { return kind == Kind::blocking; }
};

}  // namespace vecmpi::pipeline
