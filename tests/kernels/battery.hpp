// SPDX-License-Identifier: BSD-3-Clause
// Every kernel of an instruction set against its scalar twin. Needs neither Catch2 nor MPI, so that
// it also runs where only an emulator does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/api.hpp"

namespace battery {

struct Tally {
    size_t passed = 0;
    size_t failed = 0;
    std::string complaints;  // a line each, one a kernel at most
};

struct Options {
    uint64_t seed = 1;
    bool quick = false;  // fewer counts and offsets: for emulators and sanitizers
};

// All kernels that reduce_kernel gives at this cap and that are written in this instruction set.
Tally check_kernels(vecmpi::kernels::Isa isa, const Options& options);

// The same sums under every rounding mode, with and without flushing of subnormal numbers.
Tally check_environments(vecmpi::kernels::Isa isa, const Options& options);

// All 65536 floats of 16 bits on either side of some, under every rounding mode.
Tally check_halves(vecmpi::kernels::Isa isa, const Options& options);

// Outputs that no cache holds, which kernels may write past it, against small ones.
Tally check_huge(vecmpi::kernels::Isa isa, const Options& options);

// Records, tables and columns of blocks against loops over bytes, between pages that nobody may
// touch.
Tally check_blocks(vecmpi::kernels::Isa isa, const Options& options);

// Which pairs have a kernel, sizes, names, and what a cap does.
Tally check_table();

}  // namespace battery
