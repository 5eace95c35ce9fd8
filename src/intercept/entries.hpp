// SPDX-License-Identifier: BSD-3-Clause
// The entries as data: the slots that the symbols jump through, and who serves them. Not a door:
// src/intercept only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/api/needs.hpp"
#include "library/api/calls.hpp"

namespace vecmpi::intercept {

using EntryFunction = void (*)();

// Two entries a function: MPI_X, then PMPI_X.
constexpr size_t number_of_entries = 2 * library::number_of_calls;

// When a call comes to us. always: before the engine runs and after it stopped too. running: while
// it runs. needed: while one of the handler's needs exists.
enum class When : uint8_t { never, needed, running, always };

// Who serves a function: its row in the table, in the order of enum class Call.
struct Handler {
    EntryFunction function;  // null: never
    When when;
    unsigned needs;  // of struct Need
};
extern const Handler handlers[library::number_of_calls];
// The same functions for the report; null: not timed.
extern const EntryFunction timed_handlers[library::number_of_calls];

// serves: the engine runs. needs: what exists.
constexpr bool comes_to_us(const Handler& handler, bool serves, unsigned needs) noexcept {
    switch (handler.when) {
        case When::never:
            return false;
        case When::needed:
            return serves && (handler.needs & needs) != 0;
        case When::running:
            return serves;
        case When::always:
            return true;
    }
    return false;
}

}  // namespace vecmpi::intercept

extern "C" {

// Where entry i jumps. Written with release by any thread; read by the entry's own load
// (entries.S).
extern std::atomic<vecmpi::intercept::EntryFunction>
    vecmpi_entry_slots[vecmpi::intercept::number_of_entries];

// First instruction of entry i, at i * bytes_per_entry.
extern const char vecmpi_entries[];

// First instruction of the code that entry i runs until it is bound, at i * bytes_per_first_call.
extern const char vecmpi_first_calls[];

// Called from entries.S with the registers of the program's call saved: binds, returns where to
// jump. Entry number_of_entries is vecmpi_pcontrol_entry. The argument means nothing where there is
// none.
vecmpi::intercept::EntryFunction vecmpi_bind_first_call(size_t entry,
                                                        uintptr_t first_argument) noexcept;

// MPI_Pcontrol where there is a report, whatever arguments it has: obeyed, then the real function.
void vecmpi_pcontrol_entry();
}

namespace vecmpi::intercept {

constexpr size_t bytes_per_entry = 16, bytes_per_first_call = 16;

static_assert(sizeof(std::atomic<EntryFunction>) == sizeof(void*));

}  // namespace vecmpi::intercept
