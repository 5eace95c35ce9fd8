// SPDX-License-Identifier: BSD-3-Clause
// Our variables among those of the MPI tool information interface (MPI 4.0, 15.3): where they stand
// and what their handles hold. Pure: calls no MPI. Not a door: src/intercept only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace vecmpi::intercept {

// Indices of one kind (control variables, performance variables, categories), as the program sees
// them: those that the library had when it was first asked, then ours, then what it got later. An
// index keeps its meaning, as MPI wants, though the library's number grows in MPI_Init.
struct ToolIndices {
    int before;  // of the library's, before ours
    int ours;

    bool is_ours(int index) const noexcept { return index >= before && index < before + ours; }
    int our_number(int index) const noexcept { return index - before; }
    int of_ours(int number) const noexcept { return before + number; }
    int library_index(int index) const noexcept { return index < before ? index : index - ours; }
    int of_library(int index) const noexcept { return index < before ? index : index + ours; }
};

// The number of the library's that stand before ours. Set by the first thread that asks; less only
// if the library should lose some.
class FirstNumber {
  public:
    int settle(int now) noexcept {
        int settled = unsettled;
        first_.compare_exchange_strong(settled, now, std::memory_order_relaxed);
        if (settled == unsettled) return now;
        while (now < settled &&
               !first_.compare_exchange_weak(settled, now, std::memory_order_relaxed)) {
        }
        return std::min(settled, now);
    }

  private:
    static constexpr int unsettled = -1;
    std::atomic<int> first_{unsettled};
};

// A text and its length as the interface gives them (MPI 4.0, 15.3.3): *length is the size of the
// buffer, then that of the text with its end. Either may be missing.
inline void give_text(std::string_view text, char* buffer, int* length) noexcept {
    if (length == nullptr) return;
    if (buffer != nullptr && *length > 0) {
        const size_t copied = std::min(text.size(), static_cast<size_t>(*length) - 1);
        std::memcpy(buffer, text.data(), copied);
        buffer[copied] = '\0';
    }
    *length = static_cast<int>(text.size()) + 1;
}

// Our variables' names begin so.
constexpr std::string_view name_prefix = "vecmpi_";

// The number of ours of that name, which name_of(number) gives without its prefix; -1: none.
template <class NameOf>
int number_named(std::string_view name, int variables, NameOf name_of) {
    if (!name.starts_with(name_prefix)) return -1;
    name.remove_prefix(name_prefix.size());
    for (int i = 0; i < variables; ++i)
        if (name == name_of(i)) return i;
    return -1;
}

inline void give_name(std::string_view name, char* buffer, int* length) {
    give_text(std::string(name_prefix).append(name), buffer, length);
}

template <class Value>
void give(Value value, Value* to) noexcept {
    if (to != nullptr) *to = value;
}

// What one handle has seen of a counter that only grows: it counts from start to stop.
class CounterView {
  public:
    bool runs() const noexcept { return runs_; }
    void start(uint64_t counter) noexcept {
        if (!runs_) since_ = counter;
        runs_ = true;
    }
    void stop(uint64_t counter) noexcept {
        kept_ = read(counter);
        runs_ = false;
    }
    uint64_t read(uint64_t counter) const noexcept {
        return runs_ ? kept_ + (counter - since_) : kept_;
    }
    void write(uint64_t value, uint64_t counter) noexcept {
        kept_ = value;
        since_ = counter;
    }

  private:
    bool runs_ = false;
    uint64_t kept_ = 0, since_ = 0;
};

}  // namespace vecmpi::intercept
