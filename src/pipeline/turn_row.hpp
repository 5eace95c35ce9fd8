// SPDX-License-Identifier: BSD-3-Clause
// Calls in a row that one candidate of a trial serves, and what they show. Knows no MPI. Clock
// and page faults are read in end_call_now() and RowTrial::begin_row() only.
#pragma once

#include <cstdint>
#include <optional>

#include "base/api.hpp"
#include "base/api/trial.hpp"

namespace vecmpi::pipeline {

// Page faults of this thread so far, without those that read a file.
uint64_t faults_of_thread() noexcept;

// How a program calls a collective: with work of its own between the calls, or one after the other.
enum class Pace : uint8_t { unknown, with_gaps, without_gaps };

// What a rank has seen of a row, or, field by field, the most that any rank has: ns, page faults.
struct RowTimes {
    uint64_t first_ns = 0;   // of the first call, which all ranks begin together
    uint64_t second_ns = 0;  // of the second half, from end to end
    uint64_t has_gaps = 0;   // before calls of the second half there was more time than in them
    uint64_t first_faults = 0, faults = 0;
    uint64_t missing = 0;  // calls without a time
};
RowTimes slowest(const RowTimes& a, const RowTimes& b) noexcept;

// The calls of one row so far, on this rank. What is counted at their begin is equal on all ranks.
// The end of a call may be missing: an error handler of the program has left it by longjmp.
struct TurnRow {
    uint8_t candidate = 0, length = 0, begun = 0;
    uint8_t counted = 0;    // begun in the second half
    bool is_check = false;  // of a winner: is it as fast as it was?
    uint8_t ended = 0;
    uint64_t faults_before = 0, last_end_ns = 0, second_ns = 0, gaps_ns = 0, first_ns = 0;
    uint64_t first_faults = 0, faults = 0;

    bool is_full() const noexcept { return begun == length; }
    void begin_call() noexcept;
    void end_call(uint64_t begun_ns, uint64_t ended_ns) noexcept;
    bool needs_faults() const noexcept { return ended == 1 || ended == length; }
    void note_faults(uint64_t faults_now) noexcept;
    // The call that began then ends now, on this thread.
    void end_call_now(uint64_t begun_ns) noexcept;
    RowTimes times() const noexcept;
};

// What a row shows: the time of a call. counted: as of TurnRow.
struct TimeOfCall {
    uint64_t ns;
    base::Trial::Memory memory;
};
// A row of one call says nothing against gaps.
Pace pace_of(const RowTimes& row, unsigned counted) noexcept;
// Without gaps calls follow each other, and a rank may be in the next one while others are in this:
// the mean of the second half. Else the first, into which nothing of other calls falls. No time may
// be missing.
TimeOfCall time_of(const RowTimes& row, unsigned counted, Pace pace) noexcept;

// A trial whose turns are rows, one after the other. Equal on all ranks.
struct RowTrial : base::WatchedTrial {
    Pace pace = Pace::unknown;  // with gaps from the first warm row that has some
    uint64_t cold_ns = 0;       // of cold rows that did not count

    // A row and what the slowest ranks saw of it; no time is missing. What it has decided, if it
    // has. Counts for the report.
    struct Decision {
        unsigned winner;
        bool is_new;  // another one than before
        base::Trial::Times times;
    };
    std::optional<Decision> end_row(const TurnRow& row, const RowTimes& slowest,
                                    unsigned candidates, TrialMode mode) noexcept;
    // A check is due. False where no rival is worth a rematch: the winner alone may be timed.
    bool begin_rematch(unsigned candidates) noexcept;
    // Of the winner if it is a check, else of whose turn it is.
    TurnRow begin_row(bool is_check, unsigned length) noexcept;
    // A row of so many calls was cold. It counts after all where cold rows have taken long: some
    // libraries take fresh memory in every call.
    void note_cold(TimeOfCall& call, unsigned calls) noexcept;
    // True where this has ended the round.
    bool note(const TurnRow& row, const RowTimes& slowest) noexcept;
    bool check(uint64_t ns) noexcept {
        const bool begins_anew = WatchedTrial::check(ns);
        if (begins_anew) pace = Pace::unknown;
        return begins_anew;
    }
};

}  // namespace vecmpi::pipeline
