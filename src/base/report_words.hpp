// SPDX-License-Identifier: BSD-3-Clause
// Numbers of the report as words. Inside src/base only. Nothing here follows the program's locale.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/api.hpp"

namespace vecmpi::base {

inline uint64_t value_at(const std::vector<uint64_t>& numbers, size_t index) noexcept {
    return index < numbers.size() ? numbers[index] : 0;
}

// "1 rank", "2 ranks"
inline std::string counted(uint64_t number, const char* noun) {
    return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

// Not the library's calls on the calling thread, and not waits, which are whoever's the request is.
constexpr bool is_own_way(Path path) noexcept {
    return path > Path::inline_issue && path != Path::completion;
}

inline double share_of(uint64_t part, uint64_t whole) noexcept {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// "12.3 %"
inline std::string percent(uint64_t part, uint64_t whole) {
    if (whole == 0) return "-";
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): positive, and libm is not needed for it
    const auto tenths = static_cast<uint64_t>(share_of(part, whole) * 1000 + 0.5);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

}  // namespace vecmpi::base
