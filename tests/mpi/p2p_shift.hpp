// SPDX-License-Identifier: BSD-3-Clause
// A ring shift in which each rank uses a combined send-receive call of its own choice. Collective
// over the world.
#pragma once

#include "battery.hpp"

namespace battery {

// `common` has the same state on all ranks, `own` need not; comm has the ranks of MPI_COMM_WORLD.
void shift(Random& common, Random& own, MPI_Comm comm);

}  // namespace battery
