// SPDX-License-Identifier: BSD-3-Clause
// Whether an Allreduce with a user's op is scattered. Pure: values in, value out, no MPI.
#pragma once

#include <cstdint>

#include "base/api.hpp"

namespace vecmpi::pipeline {

struct UserOpFacts {
    uint64_t bytes = 0;    // of the vector
    int64_t elements = 0;  // that it may be cut between
    int ranks = 1;
};

// For a commutative op. False: *why says so.
bool scatters(const UserOpFacts& facts, const Settings& settings, Counter* why) noexcept;

}  // namespace vecmpi::pipeline
