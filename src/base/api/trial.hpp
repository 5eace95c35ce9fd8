// SPDX-License-Identifier: BSD-3-Clause
// Part of the door of src/base: which of several candidates is the fastest, found on the program's
// own calls. Knows no MPI and reads no clock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace vecmpi::base {

// Candidates serve calls in turns. After each round, in which all had a turn, those that are
// clearly slower are dropped, so that what a trial costs is bounded; after the last one the least
// time of each decides, so that an interrupted call decides nothing. Who tries on several ranks
// gives judge() times that are equal on all of them, and then all choose alike.
// Any number of threads may take turns: where two note at once one time may be lost.
class Trial {
  public:
    static constexpr unsigned most_candidates = 3, rounds = 5;
    static constexpr unsigned open = UINT8_MAX;  // no winner yet
    static constexpr uint64_t untried = UINT64_MAX;
    using Times = std::array<uint64_t, most_candidates>;  // by candidate

    // Bit i: candidate i takes part. A lower number is preferred: others must be faster by 3 %.
    explicit constexpr Trial(unsigned candidates = 0b11) noexcept
        : alive_(static_cast<uint8_t>(candidates)) {}

    unsigned winner() const noexcept { return winner_.load(std::memory_order_relaxed); }
    // Without a trial, or before its end.
    void award(unsigned winner) noexcept {
        winner_.store(static_cast<uint8_t>(winner), std::memory_order_relaxed);
    }

    bool has_begun() const noexcept {
        return begun_.load(std::memory_order_relaxed) != 0 ||
               round_.load(std::memory_order_relaxed) != 0;
    }
    // All begins anew.
    void reopen() noexcept;
    // Other candidates than were said first. Before the first turn. Of one alone nothing is tried.
    void admit(unsigned candidates) noexcept;

    // Whose turn it is. The order changes from round to round: a program that alternates between
    // two kinds of calls has all candidates timed with both.
    unsigned next() noexcept;
    // It took so long, in any unit. True where this has ended the round: judge() is due.
    bool note(unsigned candidate, uint64_t time) noexcept;
    Times least() const noexcept;
    // least: of this trial, or the slowest rank's. The first call of a candidate may be slow for
    // its own reasons, such as memory that nobody has touched yet: so it counts alone only where
    // calls are long.
    enum class Calls : uint8_t { are_short, are_long };
    void judge(const Times& least, Calls calls) noexcept;

    // What its turns took longer than if the winner had served them.
    uint64_t cost(const Times& least) const noexcept;

  private:
    struct Side {
        std::atomic<uint64_t> least{untried}, sum{0};
        std::atomic<uint32_t> turns{0};
    };
    std::atomic<uint8_t> winner_{open}, alive_, round_{0};
    std::atomic<uint32_t> begun_{0};  // turns of this round
    Side sides_[most_candidates];
};

}  // namespace vecmpi::base
