// SPDX-License-Identifier: BSD-3-Clause
#include "pack_trial.hpp"

#include <algorithm>

namespace vecmpi::datatype {

bool PackTrial::note(Packer who, uint64_t ns, int64_t bytes) noexcept {
    constexpr uint64_t ps_in_ns = 1000;
    Side& side = sides_[static_cast<size_t>(who)];
    const uint64_t ps_a_byte = ns * ps_in_ns / static_cast<uint64_t>(bytes);
    const uint64_t least = side.least_ps_a_byte.load(std::memory_order_relaxed);
    side.least_ps_a_byte.store(std::min(least, ps_a_byte), std::memory_order_relaxed);
    side.noted.fetch_add(1, std::memory_order_relaxed);
    const auto is_through = [](const Side& of) {
        return of.noted.load(std::memory_order_relaxed) >= calls_each;
    };
    if (!is_through(sides_[0]) || !is_through(sides_[1])) return false;
    const bool plan_wins = sides_[1].least_ps_a_byte.load(std::memory_order_relaxed) <
                           sides_[0].least_ps_a_byte.load(std::memory_order_relaxed);
    Winner nobody = Winner::open;
    return winner_.compare_exchange_strong(nobody, plan_wins ? Winner::plan : Winner::library,
                                           std::memory_order_relaxed);
}

}  // namespace vecmpi::datatype
