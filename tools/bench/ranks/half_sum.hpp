// SPDX-License-Identifier: BSD-3-Clause
// Sum of IEEE binary16 numbers as a user-defined MPI op on two bytes: what Horovod hands to MPI for
// float16 tensors. Not a fast kernel: it is the program's, the same plain and preloaded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vecmpi::bench {

// inout[i] += in[i], by way of float; with the CPU's conversion instructions where it has them.
void add_halves(const std::uint16_t* in, std::uint16_t* inout, std::size_t count);

// The binary16 number nearest to `number`, ties to even.
std::uint16_t half_of(float number);

}  // namespace vecmpi::bench
