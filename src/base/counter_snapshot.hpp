// SPDX-License-Identifier: BSD-3-Clause
// Where each number stands in counter_snapshot(), and what the report calls it. Inside src/base and
// its tests only.
#pragma once

#include "base/api.hpp"

namespace vecmpi::base {

constexpr size_t number_of_events = static_cast<size_t>(Counter::number_of_counters);
constexpr size_t number_of_paths = static_cast<size_t>(Path::number_of_paths);
constexpr size_t numbers_of_call = 3;  // calls, bytes, time
constexpr size_t after_calls = number_of_events + max_calls * number_of_paths * numbers_of_call;
constexpr size_t run_time_index = after_calls;  // from MPI_Init on, while counting was on
constexpr size_t mpi_time_index = after_calls + 1;
constexpr size_t several_threads_index = after_calls + 2;  // 1: calls came from several threads
constexpr size_t snapshot_length = after_calls + 3;

constexpr size_t event_index(Counter counter) noexcept { return static_cast<size_t>(counter); }
constexpr size_t calls_index(size_t call, Path path) noexcept {
    return number_of_events +
           (call * number_of_paths + static_cast<size_t>(path)) * numbers_of_call;
}
constexpr size_t bytes_index(size_t call, Path path) noexcept {
    return calls_index(call, path) + 1;
}
constexpr size_t time_index(size_t call, Path path) noexcept { return calls_index(call, path) + 2; }

inline constexpr CounterText counter_texts[] = {
#define VECMPI_COUNTER(name, kind, text) {#name, CounterKind::kind, text},
#include "base/api/counters.def"
#undef VECMPI_COUNTER
};

struct PathText {
    const char* name;
    const char* text;
};
inline constexpr PathText path_texts[] = {
    {"library", "passed to the MPI library as it was"},
    {"direct", "call that the library executed on the calling thread, after all that was posted"},
    {"inline", "operation issued at once by the calling thread, and waited for on our ladder"},
    {"queued", "operation issued from the queue by the engine"},
    {"completion", "requests that vecmpi or the library waits for, tests or starts"},
    {"segmented", "collective split into pipelined segments"},
    {"scattered", "Allreduce with a user's op, as reduce-scatter and allgather"},
    {"schedule", "by an algorithm of ours, over the library's point-to-point calls"},
    {"node", "through memory that the ranks of a node share"},
    {"plan", "derived datatype packed or unpacked by a plan of ours"},
    {"kernel", "MPI_Reduce_local by a kernel of ours"},
};
static_assert(std::size(path_texts) == number_of_paths);

}  // namespace vecmpi::base
