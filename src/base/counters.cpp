// SPDX-License-Identifier: BSD-3-Clause
// The counters of this process. All are relaxed: they are statistics, and order nothing.
#include <atomic>

#include "report_layout.hpp"
#include "vecmpi/base.hpp"

namespace vecmpi {

constinit std::atomic<bool> counting_enabled{false};

namespace {

// In one array in the order of the snapshot. 81 KiB of zero pages, untouched until counting is on.
constinit std::atomic<uint64_t> values[snapshot_length]{};

// Set once, before counting is on.
using NameOfCall = const char* (*)(size_t call);
constinit NameOfCall name_of_traced_call = nullptr;

void add_relaxed(size_t index, uint64_t add) noexcept {
    values[index].fetch_add(add, std::memory_order_relaxed);
}

}  // namespace

void count_event(Counter counter, uint64_t add) noexcept {
    if (counter < Counter::number_of_counters) add_relaxed(event_index(counter), add);
}

void count_call_event(size_t call, Path path, uint64_t bytes) noexcept {
    if (call >= max_calls || path >= Path::number_of_paths) return;
    add_relaxed(calls_index(call, path), 1);
    if (bytes != 0) add_relaxed(bytes_index(call, path), bytes);
    if (name_of_traced_call)
        log_line(LogLevel::debug, "%s %s %llu bytes", name_of_traced_call(call),
                 path_texts[static_cast<size_t>(path)].name,
                 static_cast<unsigned long long>(bytes));
}

void trace_calls(const char* (*name_of_call)(size_t call)) noexcept {
    name_of_traced_call = name_of_call;
}

std::vector<uint64_t> counter_snapshot() {
    std::vector<uint64_t> snapshot(snapshot_length);
    for (size_t i = 0; i < snapshot_length; ++i)
        snapshot[i] = values[i].load(std::memory_order_relaxed);
    return snapshot;
}

}  // namespace vecmpi
