// SPDX-License-Identifier: BSD-3-Clause
// Operands for the tests of reductions: random numbers among the special values of each type.
#pragma once

#include <random>
#include <vector>

#include "twin.hpp"

namespace samples {

using Random = std::mt19937_64;

// `count` elements; padding and all is filled. Values of pairs are drawn so that many tie.
std::vector<unsigned char> draw(Random& random, vecmpi::kernels::ElementType type, size_t count);

}  // namespace samples
