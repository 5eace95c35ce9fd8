// SPDX-License-Identifier: BSD-3-Clause
// What a row of calls shows.
#include "turn_row.hpp"

#include <algorithm>

namespace vecmpi::pipeline::node {

namespace {

// Page faults took a tenth of the time or more. A library's shared memory is touched page by page
// in its first calls, which may take ten times as long as later ones.
base::Trial::Memory memory_of(uint64_t faults, uint64_t ns) noexcept {
    constexpr uint64_t fault_ns = 1000, share = 10;  // 0.5 to 4 us were seen
    return faults * fault_ns * share > ns ? base::Trial::Memory::cold : base::Trial::Memory::warm;
}

}  // namespace

RowTimes slowest(const RowTimes& a, const RowTimes& b) noexcept {
    return {std::max(a.first_ns, b.first_ns), std::max(a.rest_ns, b.rest_ns),
            std::max(a.gaps_ns, b.gaps_ns), std::max(a.first_faults, b.first_faults),
            std::max(a.faults, b.faults)};
}

Pace pace_of(const RowTimes& row, unsigned counted) noexcept {
    return counted != 0 && row.gaps_ns <= row.rest_ns ? Pace::without_gaps : Pace::with_gaps;
}

TimeOfCall time_of(const RowTimes& row, unsigned counted, Pace pace) noexcept {
    if (pace != Pace::without_gaps)
        return {row.first_ns, memory_of(row.first_faults, row.first_ns)};
    if (counted == 0) return {row.first_ns, base::Trial::Memory::cold};  // cut short: shows nothing
    return {(row.rest_ns + row.gaps_ns) / counted,
            memory_of(row.faults, row.first_ns + row.rest_ns)};
}

}  // namespace vecmpi::pipeline::node
