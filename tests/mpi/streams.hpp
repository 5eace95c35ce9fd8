// SPDX-License-Identifier: BSD-3-Clause
// What programs share that make long streams of collectives on communicators that come and go.
#pragma once

#include <vector>

#include "battery.hpp"

namespace battery {

struct Comm {
    MPI_Comm handle;
    int rank, size;
};

// 0: a duplicate of the world; 1: the world in reverse order; else the ranks of the same rest by
// `kind`.
Comm make_comm(int kind);

// Sometimes this rank falls behind.
void lag(Random& own, int percent);

// By some call that completes requests, each rank in its own way, and not all of them.
void complete_some(std::vector<MPI_Request>& requests, Random& own);

}  // namespace battery
