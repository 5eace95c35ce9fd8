// SPDX-License-Identifier: BSD-3-Clause
// Turns of candidates, and who is dropped when.
#include "base/api/trial.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

namespace vecmpi::base {

namespace {

bool is_among(unsigned candidates, unsigned one) noexcept { return (candidates >> one & 1) != 0; }

// The n-th that takes part.
unsigned nth(unsigned candidates, unsigned n) noexcept {
    for (; n > 0; --n) candidates &= candidates - 1;
    return static_cast<unsigned>(std::countr_zero(candidates));
}

unsigned fastest(const Trial::Times& times, unsigned candidates) noexcept {
    constexpr double wins_by = 0.97;  // what differs less is noise
    unsigned best = nth(candidates, 0);
    for (unsigned i = best + 1; i < Trial::most_candidates; ++i)
        if (is_among(candidates, i) &&
            static_cast<double>(times[i]) < wins_by * static_cast<double>(times[best]))
            best = i;
    return best;
}

bool is_dropped(uint64_t time, uint64_t best, unsigned rounds_done, Trial::Calls calls) noexcept {
    if (rounds_done == 1 && calls == Trial::Calls::are_short) return false;
    const double slower =
        static_cast<double>(time) / static_cast<double>(std::max<uint64_t>(best, 1));
    return slower > (rounds_done == 1 ? 2 : 1.5);
}

}  // namespace

void Trial::reopen() noexcept {
    for (Side& side : sides_) {
        side.least.store(untried, std::memory_order_relaxed);
        side.sum.store(0, std::memory_order_relaxed);
        side.turns.store(0, std::memory_order_relaxed);
        side.turns_of_round.store(0, std::memory_order_relaxed);
    }
    begun_.store(0, std::memory_order_relaxed);
    round_.store(0, std::memory_order_relaxed);
    cold_turns_.store(0, std::memory_order_relaxed);
    award(open);
}

void Trial::begin_rematch(unsigned candidates) noexcept {
    reopen();
    alive_.store(static_cast<uint8_t>(candidates), std::memory_order_relaxed);
    round_.store(1, std::memory_order_relaxed);
}

void Trial::admit(unsigned candidates, Calls calls, Begins begins) noexcept {
    alive_.store(static_cast<uint8_t>(candidates), std::memory_order_relaxed);
    calls_.store(calls, std::memory_order_relaxed);
    begins_.store(begins, std::memory_order_relaxed);
    if (std::has_single_bit(candidates)) award(nth(candidates, 0));
}

unsigned Trial::next() noexcept {
    const unsigned alive = alive_.load(std::memory_order_relaxed);
    const auto number = static_cast<unsigned>(std::popcount(alive));
    const unsigned turn = begun_.fetch_add(1, std::memory_order_relaxed);
    const unsigned first = begins_.load(std::memory_order_relaxed) == Begins::last ? number - 1 : 0;
    return nth(alive, (first + turn + round_.load(std::memory_order_relaxed)) % number);
}

bool Trial::note(unsigned candidate, uint64_t time, Memory memory) noexcept {
    Side& side = sides_[candidate];
    side.sum.fetch_add(time, std::memory_order_relaxed);
    side.turns.fetch_add(1, std::memory_order_relaxed);
    const uint8_t cold_before = cold_turns_.load(std::memory_order_relaxed);
    if (memory == Memory::cold && cold_before < most_cold_turns) {
        cold_turns_.store(cold_before + 1, std::memory_order_relaxed);
        begun_.fetch_sub(1, std::memory_order_relaxed);  // the same one once more
        return false;
    }
    const uint64_t least = side.least.load(std::memory_order_relaxed);
    side.least.store(std::min(least, time), std::memory_order_relaxed);
    side.turns_of_round.fetch_add(1, std::memory_order_relaxed);
    const unsigned alive = alive_.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < most_candidates; ++i)
        if (is_among(alive, i) && sides_[i].turns_of_round.load(std::memory_order_relaxed) == 0)
            return false;
    return winner() == open;
}

Trial::Times Trial::least() const noexcept {
    Times times;
    for (unsigned i = 0; i < most_candidates; ++i)
        times[i] = sides_[i].least.load(std::memory_order_relaxed);
    return times;
}

void Trial::judge(const Times& least) noexcept {
    const unsigned alive = alive_.load(std::memory_order_relaxed);
    const unsigned done = round_.load(std::memory_order_relaxed) + 1u;
    const Calls calls = calls_.load(std::memory_order_relaxed);
    uint64_t best = untried;
    for (unsigned i = 0; i < most_candidates; ++i)
        if (is_among(alive, i)) best = std::min(best, least[i]);
    unsigned kept = alive;
    for (unsigned i = 0; i < most_candidates; ++i)
        if (is_among(alive, i) && is_dropped(least[i], best, done, calls)) kept &= ~(1u << i);
    if (done == rounds || std::popcount(kept) == 1) return award(fastest(least, kept));
    alive_.store(static_cast<uint8_t>(kept), std::memory_order_relaxed);
    for (Side& side : sides_) side.turns_of_round.store(0, std::memory_order_relaxed);
    begun_.store(0, std::memory_order_relaxed);
    round_.store(static_cast<uint8_t>(done), std::memory_order_relaxed);
}

uint64_t Trial::cost(const Times& least) const noexcept {
    const unsigned winner = this->winner();
    uint64_t cost = 0;
    for (unsigned i = 0; i < most_candidates; ++i) {
        const uint64_t turns = sides_[i].turns.load(std::memory_order_relaxed);
        const uint64_t sum = sides_[i].sum.load(std::memory_order_relaxed);
        if (winner < most_candidates) cost += sum - std::min(sum, turns * least[winner]);
    }
    return cost;
}

ShownTime::ShownTime(uint64_t ns) noexcept {
    if (ns == Trial::untried)
        std::snprintf(text, sizeof text, "-");
    else
        std::snprintf(text, sizeof text, "%.2f us", 1e-3 * static_cast<double>(ns));
}

unsigned WatchedTrial::rivals(unsigned candidates) const noexcept {
    constexpr uint64_t near = 2;
    const unsigned winner = trial.winner();
    const Trial::Times times = trial.least();
    if (times[winner] == Trial::untried || between_checks == most_between_checks) return candidates;
    unsigned rivals = 0;
    for (unsigned i = 0; i < Trial::most_candidates; ++i)
        if (times[i] / near <= times[winner]) rivals |= 1u << i;
    return rivals & candidates;
}

void WatchedTrial::decided() noexcept {
    const auto winner = static_cast<uint8_t>(trial.winner());
    between_checks = winner == std::exchange(last_winner, winner)
                         ? std::min(4 * between_checks, most_between_checks)
                         : first_check;
    calls_to_check = between_checks;
}

void WatchedTrial::shuffle(unsigned candidates) noexcept {
    shuffled = 1664525 * shuffled + 1013904223;
    const unsigned number = shuffled >> 16;
    trial.award(nth(candidates, number % static_cast<unsigned>(std::popcount(candidates))));
    between_checks = most_between_checks;  // all take part in the next rematch
    calls_to_check = 1 + (number >> 8) % 8;
}

bool WatchedTrial::check(uint64_t ns) noexcept {
    constexpr uint64_t much_slower = 4;
    if (winner_ns == 0) winner_ns = ns;
    slow_checks = ns > much_slower * winner_ns ? slow_checks + 1 : 0;
    if (slow_checks < 2) return false;
    slow_checks = 0;
    winner_ns = 0;
    trial.reopen();
    return true;
}

}  // namespace vecmpi::base
