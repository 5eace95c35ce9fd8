// SPDX-License-Identifier: BSD-3-Clause
// Lines on standard error. Not for the report, which may be longer than a line.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "base/api.hpp"

namespace vecmpi::base {
namespace {

// Relaxed: written once in MPI_Init; a line printed meanwhile may lack the rank.
constinit std::atomic<int> log_rank{-1};

constexpr size_t longest_line = 1000;  // below PIPE_BUF, so that lines of ranks never mix

size_t clamp_length(int printed, size_t room) noexcept {
    return printed < 0 ? 0 : std::min(static_cast<size_t>(printed), room - 1);
}

}  // namespace

bool log_wants(LogLevel level) noexcept { return level <= settings().log; }

void set_log_rank(int world_rank) noexcept {
    log_rank.store(world_rank, std::memory_order_relaxed);
}

void log_line(LogLevel level, const char* format, ...) noexcept {
    if (!log_wants(level)) return;
    int saved_errno = errno;
    char line[longest_line + 1];
    int rank = log_rank.load(std::memory_order_relaxed);
    int printed = rank < 0 ? std::snprintf(line, sizeof line, "vecmpi: ")
                           : std::snprintf(line, sizeof line, "vecmpi[%d]: ", rank);
    size_t length = clamp_length(printed, sizeof line);
    va_list arguments;
    va_start(arguments, format);
    printed = std::vsnprintf(line + length, longest_line - length, format, arguments);
    va_end(arguments);
    length += clamp_length(printed, longest_line - length);
    std::replace(line, line + length, '\n', ' ');  // one message, one line
    line[length++] = '\n';
    while (write(STDERR_FILENO, line, length) < 0 && errno == EINTR) {
    }
    errno = saved_errno;
}

}  // namespace vecmpi::base
