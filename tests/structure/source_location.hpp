// SPDX-License-Identifier: BSD-3-Clause
// std::source_location for clang-tidy 14, which lacks what libstdc++ builds it on. scripts/lint.sh
// has it included before the tests; no compiler sees it.
#pragma once

#include <cstdint>
#include <source_location>

#ifndef __cpp_lib_source_location
namespace std {
struct source_location {
    static constexpr source_location current(const char* file = __builtin_FILE(),
                                             uint_least32_t line = __builtin_LINE()) noexcept {
        return {file, line};
    }
    constexpr const char* file_name() const noexcept { return file_; }
    constexpr uint_least32_t line() const noexcept { return line_; }

    const char* file_ = "";
    uint_least32_t line_ = 0;
};
}  // namespace std
#endif
