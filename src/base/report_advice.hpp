// SPDX-License-Identifier: BSD-3-Clause
// What the report says to do next. Inside src/base and its tests only. Pure: only what the counts
// and facts of the run show.
#pragma once

#include <string>
#include <vector>

#include "base/api.hpp"

namespace vecmpi::base {

constexpr size_t most_advices = 2;

// The most important first, a line each. Empty: nothing is known that would help.
std::vector<std::string> advices(const ReportFacts& facts, const ReportNumbers& numbers);

}  // namespace vecmpi::base
