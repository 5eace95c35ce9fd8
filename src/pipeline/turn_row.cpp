// SPDX-License-Identifier: BSD-3-Clause
// What a row of calls shows.
#include "turn_row.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <bit>

namespace vecmpi::pipeline {

namespace {

// Page faults took a tenth of the time or more. A library's shared memory is touched page by page
// in its first calls, which may take ten times as long as later ones.
base::Trial::Memory memory_of(uint64_t faults, uint64_t ns) noexcept {
    constexpr uint64_t fault_ns = 1000, share = 10;  // 0.5 to 4 us were seen
    return faults * fault_ns * share > ns ? base::Trial::Memory::cold : base::Trial::Memory::warm;
}

}  // namespace

uint64_t faults_of_thread() noexcept {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return static_cast<uint64_t>(usage.ru_minflt);
}

RowTimes slowest(const RowTimes& a, const RowTimes& b) noexcept {
    return {std::max(a.first_ns, b.first_ns), std::max(a.second_ns, b.second_ns),
            std::max(a.has_gaps, b.has_gaps), std::max(a.first_faults, b.first_faults),
            std::max(a.faults, b.faults),     std::max(a.missing, b.missing)};
}

void TurnRow::begin_call() noexcept {
    if (begun != 0 && begun >= length / 2) ++counted;
    ++begun;
}

void TurnRow::end_call(uint64_t begun_ns, uint64_t ended_ns) noexcept {
    if (begun == 1) {
        first_ns = ended_ns - begun_ns;
    } else if (begun > length / 2) {
        second_ns += ended_ns - last_end_ns;
        gaps_ns += begun_ns - last_end_ns;
    }
    last_end_ns = ended_ns;
    ++ended;
}

// Counted by thread: another one may have begun the row.
void TurnRow::note_faults(uint64_t faults_now) noexcept {
    faults = faults_now - std::min(faults_now, faults_before);
    if (ended == 1) first_faults = faults;
}

void TurnRow::end_call_now(uint64_t begun_ns) noexcept {
    end_call(begun_ns, monotonic_ns());
    if (needs_faults()) note_faults(faults_of_thread());
}

RowTimes TurnRow::times() const noexcept {
    const bool has_gaps = 2 * gaps_ns > second_ns;
    return {first_ns, second_ns, has_gaps, first_faults, faults, uint64_t{begun} - ended};
}

Pace pace_of(const RowTimes& row, unsigned counted) noexcept {
    return counted != 0 && row.has_gaps == 0 ? Pace::without_gaps : Pace::with_gaps;
}

TimeOfCall time_of(const RowTimes& row, unsigned counted, Pace pace) noexcept {
    if (pace != Pace::without_gaps || counted == 0)
        return {row.first_ns, memory_of(row.first_faults, row.first_ns)};
    return {row.second_ns / counted, memory_of(row.faults, row.first_ns + row.second_ns)};
}

void RowTrial::note_cold(TimeOfCall& call, unsigned calls) noexcept {
    constexpr uint64_t most_ns = 8'000'000;
    if (cold_ns >= most_ns)
        call.memory = base::Trial::Memory::warm;
    else
        cold_ns += call.ns * calls;
}

bool RowTrial::note(const TurnRow& row, const RowTimes& slowest) noexcept {
    const Pace seen = pace_of(slowest, row.counted);
    const Pace taken = pace == Pace::unknown ? seen : pace;
    TimeOfCall call = time_of(slowest, row.counted, taken);
    if (call.memory == base::Trial::Memory::cold) note_cold(call, row.begun);
    if (call.memory == base::Trial::Memory::warm) {
        pace = taken;
        // What was found so far is the time of something else.
        if (taken == Pace::without_gaps && seen == Pace::with_gaps) {
            pace = Pace::with_gaps;
            trial.reopen();
            return false;
        }
    }
    return trial.note(row.candidate, call.ns, call.memory);
}

std::optional<RowTrial::Decision> RowTrial::end_row(const TurnRow& row, const RowTimes& slowest,
                                                    unsigned candidates, TrialMode mode) noexcept {
    if (row.is_check) {
        count(Counter::trials_again, check(slowest.first_ns));
        return std::nullopt;
    }
    if (!note(row, slowest)) return std::nullopt;
    Decision decision{base::Trial::open, false, trial.least()};
    trial.judge(decision.times);
    if (trial.winner() == base::Trial::open) return std::nullopt;
    if (mode == TrialMode::shuffle) shuffle(candidates);
    decision.winner = trial.winner();
    decision.is_new = decision.winner != last_winner;
    if (mode != TrialMode::shuffle) decided();
    count(Counter::trials);
    count(Counter::trials_cost_ns, trial.cost(decision.times) * row.length);
    return decision;
}

bool RowTrial::begin_rematch(unsigned candidates) noexcept {
    calls_to_check = between_checks;
    last_winner = static_cast<uint8_t>(trial.winner());
    const unsigned near = rivals(candidates);
    if (std::popcount(near) < 2) return false;
    trial.begin_rematch(near);
    pace = Pace::unknown;
    return true;
}

TurnRow RowTrial::begin_row(bool is_check, unsigned length) noexcept {
    TurnRow row;
    row.is_check = is_check;
    row.candidate = static_cast<uint8_t>(is_check ? trial.winner() : trial.next());
    row.length = static_cast<uint8_t>(is_check ? 1 : length);
    row.faults_before = faults_of_thread();
    return row;
}

}  // namespace vecmpi::pipeline
