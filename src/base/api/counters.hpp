// SPDX-License-Identifier: BSD-3-Clause
// What vecmpi did, counted: for the report, for tools, for the log.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vecmpi::base {

enum class Counter : uint16_t {
#define VECMPI_COUNTER(name, kind, text) name,
#include "counters.def"
#undef VECMPI_COUNTER
    number_of_counters
};

enum class CounterKind : uint8_t { event, decline };
struct CounterText {
    const char* name;
    CounterKind kind;
    const char* text;
};
const CounterText& text_of(Counter counter) noexcept;

// Who wants counts. Until somebody does, counting costs one predictable branch.
struct CountedFor {
    static constexpr uint8_t report = 1, trace = 2, tools = 4;
};
extern std::atomic<uint8_t> counting;
void count_event(Counter counter, uint64_t add) noexcept;
inline void count(Counter counter, uint64_t add = 1) noexcept {
    if (counting.load(std::memory_order_relaxed) != 0) [[unlikely]]
        count_event(counter, add);
}

// How a call was served. Of several paths that had a part in it, the last in this order counts.
enum class Path : uint8_t {
    library,
    direct,
    inline_issue,
    queued,
    completion,
    segmented,
    scattered,
    scheduled,
    on_node,
    own_pack,
    own_kernel,
    number_of_paths
};
constexpr size_t max_calls = 1024;  // MPI functions that can be counted; the intercept names them
// This path has a part in the thread's current call. bytes: for the trace.
void count_call_event(size_t call, Path path, uint64_t bytes) noexcept;
inline void count_call(size_t call, Path path, uint64_t bytes) noexcept {
    if (counting.load(std::memory_order_relaxed) != 0) [[unlikely]]
        count_call_event(call, path, bytes);
}

// Times a call of the program to the end of the scope, and adds it to its row of the report. A call
// within it (from a callback) takes its own time, so none counts twice. A scope that is left by
// longjmp counts nothing, and does no harm.
class CallTimer {
  public:
    // path: where count_call() names none. counts: false for a call that is not the program's own.
    CallTimer(size_t call, Path path, bool counts) noexcept;
    ~CallTimer();
    CallTimer(const CallTimer&) = delete;
    CallTimer& operator=(const CallTimer&) = delete;
    bool counts() const noexcept { return counts_; }
    void add_bytes(uint64_t bytes) noexcept { bytes_ += bytes; }

  private:
    size_t call_;
    uint64_t bytes_ = 0, began_ = 0;
    uint64_t outer_inner_ticks_;  // of the call around this one
    Path outer_path_;
    bool counts_;
};

// From now on the report counts.
void begin_report() noexcept;
// The run's time begins: at the end of MPI_Init.
void begin_run() noexcept;
// MPI_Pcontrol: the report stops or resumes counting, or forgets its counts.
void count_for_report(bool on) noexcept;
void empty_report() noexcept;

// Counters as tools see them: counted while a tool wants them, whatever the report does. Nests.
void count_for_tools(bool on) noexcept;
uint64_t counted_for_tools(Counter counter) noexcept;

// From now on each counted call is a line of the log at level debug: name, path, bytes. The names
// are given, since base knows no MPI call.
void trace_calls(const char* (*name_of_call)(size_t call)) noexcept;

}  // namespace vecmpi::base
