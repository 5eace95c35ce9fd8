// SPDX-License-Identifier: BSD-3-Clause
// Whether an Allreduce with a user's op is scattered. Pure: values in, value out, no MPI.
#pragma once

#include <cstdint>

#include "base/api.hpp"

namespace vecmpi::pipeline {

// Measured, recursive doubling against this, ms: 1 MiB over 3 and 5 hosts at 1 Gbit/s 36 and 29, 71
// and 58; 256 KiB 11 and 8, 24 and 35, for MPICH's Reduce_scatter halves recursively up to 512 KiB.
constexpr uint64_t scattered_from_bytes = 1 << 20;
constexpr int scattered_from_ranks = 3;  // with an element each

struct UserOpFacts {
    uint64_t bytes = 0;    // of the vector
    int64_t elements = 0;  // that it may be cut between
    int ranks = 1;
};

// For a commutative op. False: *why says so.
bool scatters(const UserOpFacts& facts, const Settings& settings, Counter* why) noexcept;

}  // namespace vecmpi::pipeline
