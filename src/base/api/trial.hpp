// SPDX-License-Identifier: BSD-3-Clause
// Part of the door of src/base: which of several candidates is the fastest, found on the program's
// own calls. Knows no MPI and reads no clock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace vecmpi::base {

// Candidates serve calls in turns. After each round, in which all had theirs, those that are
// clearly slower are dropped, so that what a trial costs is bounded; after the last one the least
// time of each decides, so that an interrupted call decides nothing. Who tries on several ranks
// notes or judges by times that are equal on all of them, and then all choose alike.
// Any number of threads may take turns: where two note at once one time may be lost.
class Trial {
  public:
    static constexpr unsigned most_candidates = 3, rounds = 4;
    // That are left out, in a whole trial.
    static constexpr unsigned most_cold_turns = 64;
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
    // All begins anew. A rematch is one of those who are known to be near each other: they have
    // made what they need, so the first round counts.
    void reopen() noexcept;
    void begin_rematch(unsigned candidates) noexcept;
    // Other candidates than were said first. Before the first turn. Of one alone nothing is tried.
    // The first turns may be slow for their own reasons: whoever is served first makes what he
    // needs. So nobody is dropped after the first round, unless calls are long.
    enum class Calls : uint8_t { are_short, are_long };
    // Whose turn is the very first. The last is the library, where it takes part: a program that
    // makes few long calls never pays for what the others need.
    enum class Begins : uint8_t { first, last };
    void admit(unsigned candidates, Calls calls, Begins begins = Begins::first) noexcept;

    // Whose turn it is. The order changes from round to round: a program that alternates between
    // two kinds of calls has all candidates timed with both.
    unsigned next() noexcept;
    // It took so long, in any unit. True where this has ended the round: judge() is due.
    // A cold turn touched memory that nobody had touched yet and says little of those to come: the
    // next one is the same candidate's.
    enum class Memory : uint8_t { warm, cold };
    bool note(unsigned candidate, uint64_t time, Memory memory = Memory::warm) noexcept;
    Times least() const noexcept;
    // least: of this trial, or the slowest rank's.
    void judge(const Times& least) noexcept;

    // What its turns took longer than if the winner had served them.
    uint64_t cost(const Times& least) const noexcept;

  private:
    struct Side {
        std::atomic<uint64_t> least{untried}, sum{0};
        std::atomic<uint32_t> turns{0}, turns_of_round{0};  // the latter without cold ones
    };
    std::atomic<uint8_t> winner_{open}, alive_, round_{0}, cold_turns_{0};
    std::atomic<Calls> calls_{Calls::are_short};
    std::atomic<Begins> begins_{Begins::first};
    std::atomic<uint32_t> begun_{0};  // turns of this round
    Side sides_[most_candidates];
};

// A time for the log: "4.21 us", or "-" where there is none.
struct ShownTime {
    explicit ShownTime(uint64_t ns) noexcept;
    char text[24];
};

// A trial whose winner is looked at again. Equal on all ranks that judge alike.
struct WatchedTrial {
    // Calls from a decision to its first check, and from check to check: fewer of a new choice.
    static constexpr uint32_t first_check = 1021, most_between_checks = 16 * first_check;

    Trial trial;
    uint32_t calls_to_check = first_check, between_checks = first_check;
    uint64_t winner_ns = 0;  // 0: no check has shown it yet
    unsigned slow_checks = 0;
    uint8_t last_winner = Trial::open;
    uint32_t shuffled = 1;

    bool is_check_due() noexcept { return --calls_to_check == 0; }
    // A check is due. Which of the candidates came so near that a rematch is worth their calls, the
    // winner among them. All, if the winner was adopted or has won again and again; only the
    // winner, if nobody did.
    unsigned rivals(unsigned candidates) const noexcept;
    void decided() noexcept;
    // For tests: another one has won, by chance, and not for long. The same on all ranks.
    void shuffle(unsigned candidates) noexcept;
    // Without rivals. The slowest rank's time of a call by the winner. True where the trial begins
    // anew: two checks in a row were much slower. (Sizes of a class differ by up to 2.)
    bool check(uint64_t ns) noexcept;
};

}  // namespace vecmpi::base
