// SPDX-License-Identifier: BSD-3-Clause
// The computation that measurements run beside communication: a fixed amount, in registers, without
// memory traffic. It must not look at a clock: a loop that ends at a deadline would hide CPU time
// that another thread took.
#pragma once

#include <cstdint>

namespace vecmpi::bench {

// Runs `steps` dependent multiply-adds.
void work(std::uint64_t steps);

// How many steps take `ns` on an undisturbed CPU (the fastest of several trials on the calling
// thread).
std::uint64_t steps_for(double ns);

}  // namespace vecmpi::bench
