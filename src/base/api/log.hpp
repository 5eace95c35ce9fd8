// SPDX-License-Identifier: BSD-3-Clause
// The log: lines on standard error.
#pragma once

#include "settings.hpp"

namespace vecmpi::base {

// One line on standard error, "vecmpi: " or "vecmpi[rank]: " first, written with one write(2).
void log_line(LogLevel level, const char* format, ...) noexcept
    __attribute__((format(printf, 2, 3)));
bool log_wants(LogLevel level) noexcept;
void set_log_rank(int world_rank) noexcept;

}  // namespace vecmpi::base
