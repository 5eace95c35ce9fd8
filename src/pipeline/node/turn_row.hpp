// SPDX-License-Identifier: BSD-3-Clause
// Calls in a row that one candidate of a trial serves, and what they show. Knows no MPI and reads
// no clock.
#pragma once

#include <cstdint>

#include "base/api/trial.hpp"

namespace vecmpi::pipeline::node {

// How a program calls a collective: with work of its own between the calls, or one after the other.
enum class Pace : uint8_t { unknown, with_gaps, without_gaps };

// What a rank has seen of a row, or, field by field, the most that any rank has: ns, page faults.
struct RowTimes {
    uint64_t first_ns = 0;              // of the first call, which all ranks begin together
    uint64_t rest_ns = 0, gaps_ns = 0;  // of calls of the second half, and before each
    uint64_t first_faults = 0, faults = 0;
};
RowTimes slowest(const RowTimes& a, const RowTimes& b) noexcept;

// The calls of one row that are done, on this rank.
struct TurnRow {
    uint8_t candidate = 0, calls = 0, counted = 0;  // counted: of the second half
    uint64_t faults_before = 0, last_end_ns = 0;
    RowTimes times;

    // length: calls of a whole row.
    void end_call(uint64_t begun_ns, uint64_t ended_ns, unsigned length) noexcept {
        if (calls == 0) {
            times.first_ns = ended_ns - begun_ns;
        } else if (calls >= length / 2) {
            ++counted;
            times.rest_ns += ended_ns - begun_ns;
            times.gaps_ns += begun_ns - last_end_ns;
        }
        last_end_ns = ended_ns;
        ++calls;
    }
};

// What a row shows: the time of a call. counted: equal on all ranks.
struct TimeOfCall {
    uint64_t ns;
    base::Trial::Memory memory;
};
Pace pace_of(const RowTimes& row, unsigned counted) noexcept;
// Without gaps calls follow each other, and a rank may be in the next one while others are in this:
// the mean of the second half, from end to end. Else the first, into which nothing of other calls
// falls.
TimeOfCall time_of(const RowTimes& row, unsigned counted, Pace pace) noexcept;

}  // namespace vecmpi::pipeline::node
