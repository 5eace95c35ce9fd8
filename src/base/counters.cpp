// SPDX-License-Identifier: BSD-3-Clause
// The counters and times of this process. All are relaxed: they are statistics, and order nothing.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/api.hpp"
#include "base/api/needs.hpp"
#include "counter_snapshot.hpp"
#include "ticks.hpp"

namespace vecmpi::base {

constinit std::atomic<uint8_t> counting{0};

namespace {

// Both in the order of the snapshot; times in ticks. The first takes 265 KiB of zero pages,
// untouched until the report is on.
constinit std::atomic<uint64_t> values[after_calls]{};
constinit std::atomic<uint64_t> values_for_tools[number_of_events]{};

// Set once, before counting is on.
using NameOfCall = const char* (*)(size_t call);
constinit NameOfCall name_of_traced_call = nullptr;
constinit ClockReading report_began{};

// Held while counting is switched on or off, never while something is counted.
constinit std::mutex switching;
constinit uint64_t ticks_counted = 0;  // while counting was on, before `counting_since`
constinit std::atomic<uint64_t> counting_since{0};  // ticks
constinit unsigned tools = 0;                       // that want counters

// Of the call that this thread is in.
struct CallUnderWay {
    uint64_t inner_ticks;  // of the calls inside it
    Path path;
    bool is_known_thread;
};
thread_local constinit CallUnderWay under_way __attribute__((tls_model("initial-exec"))) = {};
constinit std::atomic<unsigned> calling_threads{0};

bool is_counted_for(uint8_t whom) noexcept {
    return (counting.load(std::memory_order_relaxed) & whom) != 0;
}

void add_relaxed(std::atomic<uint64_t>& value, uint64_t add) noexcept {
    if (add != 0) value.fetch_add(add, std::memory_order_relaxed);
}

// With `switching` held, or before there are others.
void count_for(uint8_t whom, bool on) noexcept {
    if (on)
        counting.fetch_or(whom, std::memory_order_relaxed);
    else
        counting.fetch_and(static_cast<uint8_t>(~whom), std::memory_order_relaxed);
    set_need(Need::counting, counting.load(std::memory_order_relaxed) != 0);
}

void note_thread() noexcept {
    if (under_way.is_known_thread) return;
    under_way.is_known_thread = true;
    calling_threads.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

const CounterText& text_of(Counter counter) noexcept {
    return counter_texts[static_cast<size_t>(counter)];
}

void count_event(Counter counter, uint64_t add) noexcept {
    if (counter >= Counter::number_of_counters) return;
    if (is_counted_for(CountedFor::report)) add_relaxed(values[event_index(counter)], add);
    if (is_counted_for(CountedFor::tools)) add_relaxed(values_for_tools[event_index(counter)], add);
}

void count_call_event(size_t call, Path path, uint64_t bytes) noexcept {
    if (call >= max_calls || path >= Path::number_of_paths) return;
    under_way.path = std::max(under_way.path, path);
    if (name_of_traced_call && is_counted_for(CountedFor::trace))
        log_line(LogLevel::debug, "%s %s %llu bytes", name_of_traced_call(call),
                 path_texts[static_cast<size_t>(path)].name,
                 static_cast<unsigned long long>(bytes));
}

void trace_calls(const char* (*name_of_call)(size_t call)) noexcept {
    name_of_traced_call = name_of_call;
    count_for(CountedFor::trace, true);
}

// ---- calls --------------------------------------------------------------------------------------

CallTimer::CallTimer(size_t call, Path path, bool counts) noexcept
    : call_(call),
      outer_inner_ticks_(under_way.inner_ticks),
      outer_path_(std::exchange(under_way.path, path)),
      counts_(counts && call < max_calls && is_counted_for(CountedFor::report)) {
    if (!counts_) return;
    note_thread();
    under_way.inner_ticks = 0;
    began_ = ticks();
}

// Where another thread's MPI_Pcontrol(2) came during the call, only the time after it counts.
CallTimer::~CallTimer() {
    const Path path = std::exchange(under_way.path, outer_path_);
    if (!counts_) return;
    const uint64_t now = ticks();
    const uint64_t all = now - std::min(now, began_);
    const uint64_t inner = std::exchange(under_way.inner_ticks, outer_inner_ticks_ + all);
    if (!is_counted_for(CountedFor::report)) return;
    const uint64_t counted = now - std::min(now, counting_since.load(std::memory_order_relaxed));
    add_relaxed(values[calls_index(call_, path)], 1);
    add_relaxed(values[bytes_index(call_, path)], bytes_);
    add_relaxed(values[time_index(call_, path)], std::min(all - std::min(all, inner), counted));
}

// ---- on and off ---------------------------------------------------------------------------------

void begin_report() noexcept {
    choose_ticks();
    report_began = read_clocks();
    count_for_report(true);
}

void begin_run() noexcept {
    const std::lock_guard lock(switching);
    counting_since.store(ticks(), std::memory_order_relaxed);
}

void count_for_report(bool on) noexcept {
    const std::lock_guard lock(switching);
    if (on == is_counted_for(CountedFor::report)) return;
    if (on) {
        counting_since.store(ticks(), std::memory_order_relaxed);
        count_for(CountedFor::report, true);
    } else {
        count_for(CountedFor::report, false);
        ticks_counted += ticks() - counting_since.load(std::memory_order_relaxed);
    }
}

void empty_report() noexcept {
    const std::lock_guard lock(switching);
    ticks_counted = 0;
    counting_since.store(ticks(), std::memory_order_relaxed);
    for (std::atomic<uint64_t>& value : values)
        if (value.load(std::memory_order_relaxed) != 0) value.store(0, std::memory_order_relaxed);
    empty_datatype_rows();
}

void count_for_tools(bool on) noexcept {
    const std::lock_guard lock(switching);
    tools += on ? 1 : -1u;
    count_for(CountedFor::tools, tools != 0);
}

uint64_t counted_for_tools(Counter counter) noexcept {
    return values_for_tools[event_index(counter)].load(std::memory_order_relaxed);
}

// ---- snapshot -----------------------------------------------------------------------------------

namespace {

uint64_t run_ticks() noexcept {
    const std::lock_guard lock(switching);
    if (!is_counted_for(CountedFor::report)) return ticks_counted;
    return ticks_counted + ticks() - counting_since.load(std::memory_order_relaxed);
}

}  // namespace

std::vector<uint64_t> counter_snapshot() {
    std::vector<uint64_t> snapshot(snapshot_length);
    const ClockReading now = read_clocks();
    for (size_t i = 0; i < after_calls; ++i)
        snapshot[i] = values[i].load(std::memory_order_relaxed);
    for (size_t i = number_of_events + 2; i < after_calls; i += numbers_of_call) {
        snapshot[i] = ticks_to_ns(snapshot[i], report_began, now);
        snapshot[mpi_time_index] += snapshot[i];
    }
    snapshot[run_time_index] = ticks_to_ns(run_ticks(), report_began, now);
    snapshot[several_threads_index] = calling_threads.load(std::memory_order_relaxed) > 1;
    return snapshot;
}

}  // namespace vecmpi::base
