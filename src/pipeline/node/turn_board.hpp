// SPDX-License-Identifier: BSD-3-Clause
// Where ranks meet before a turn of a trial. Knows no MPI and does not wait.
#pragma once

#include <atomic>
#include <cstdint>

namespace vecmpi::pipeline::node {

enum class Meeting : uint8_t {
    open,
    complete,   // all ranks are in the same call
    called_off  // one rank waited too long, or is in another call
};

// One word that all ranks write, so that all find the same. All zeros at first. After a complete
// turn comes something that needs all ranks, so nobody arrives for the next one before all have
// looked; of one that was called off they may look later.
class TurnBoard {
  public:
    static constexpr unsigned what_bits = 32, most_ranks = (1u << 15) - 1;

    void clear() noexcept { word_.store(0, std::memory_order_relaxed); }
    // This rank begins turn `number`, a call `what`: numbers count from 1.
    Meeting arrive(uint16_t number, uint32_t what, unsigned ranks) noexcept {
        uint64_t seen = word_.load(std::memory_order_acquire), wanted = 0;
        do {
            if (is_older(seen, number))
                wanted = uint64_t{number} << number_at | uint64_t{what} << what_at | 1;
            else if (state(seen, number, ranks) == Meeting::called_off)
                return Meeting::called_off;
            else if (static_cast<uint32_t>(seen >> what_at) != what)
                wanted = seen | is_called_off;
            else
                wanted = seen + 1;
        } while (!word_.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel,
                                              std::memory_order_acquire));
        return state(wanted, number, ranks);
    }
    Meeting look(uint16_t number, unsigned ranks) const noexcept {
        return state(word_.load(std::memory_order_acquire), number, ranks);
    }
    // Unless it is complete.
    Meeting call_off(uint16_t number, unsigned ranks) noexcept {
        uint64_t seen = word_.load(std::memory_order_acquire);
        while (state(seen, number, ranks) == Meeting::open)
            if (word_.compare_exchange_weak(seen, seen | is_called_off, std::memory_order_acq_rel,
                                            std::memory_order_acquire))
                return Meeting::called_off;
        return state(seen, number, ranks);
    }

  private:
    static constexpr unsigned number_at = 48, what_at = 16;
    static constexpr uint64_t is_called_off = 1u << 15, arrived = most_ranks;

    static bool is_older(uint64_t word, uint16_t number) noexcept {
        return static_cast<int16_t>(static_cast<uint16_t>(word >> number_at) - number) < 0;
    }
    // A later turn is there only if this one was called off.
    static Meeting state(uint64_t word, uint16_t number, unsigned ranks) noexcept {
        if (word >> number_at != number || (word & is_called_off) != 0) return Meeting::called_off;
        return (word & arrived) == ranks ? Meeting::complete : Meeting::open;
    }

    std::atomic<uint64_t> word_;
};

}  // namespace vecmpi::pipeline::node
