// SPDX-License-Identifier: BSD-3-Clause
// Signals of lanes: told, awaited.
#include "bay.hpp"

#include <algorithm>

#include "offload/api.hpp"

namespace vecmpi::pipeline::node {

bool Lane::is_free(uint64_t round) noexcept {
    const uint64_t slots = shape_of(kind_).slots;
    if (round <= all_read_ + slots) return true;
    uint64_t least = UINT64_MAX;
    for (int rank = 0; rank < ranks(); ++rank)
        least = std::min(least, last_told(Signal::read, rank));
    all_read_ = least;
    return round <= all_read_ + slots;
}

void Lane::await_free(uint64_t round) noexcept {
    const uint64_t slots = shape_of(kind_).slots;
    if (round <= all_read_ + slots) return;
    uint64_t least = UINT64_MAX;
    for (int rank = 0; rank < ranks(); ++rank)
        least = std::min(least, await(Signal::read, rank, round - slots));
    all_read_ = least;
}

void Lane::tell(Signal signal, uint64_t round) noexcept {
    told(me_, signal).store(round, std::memory_order_release);  // pairs with last_told()
    doors_.ring_all();
}

uint64_t Lane::last_told(Signal signal, int rank) const noexcept {
    return told(rank, signal).load(std::memory_order_acquire);  // pairs with tell()
}

bool Lane::have_all_told(Signal signal, uint64_t round) const noexcept {
    for (int i = 1; i < ranks(); ++i)
        if (last_told(signal, (me_ + i) % ranks()) < round) return false;
    return true;
}

uint64_t Lane::await(Signal signal, int rank, uint64_t round) const noexcept {
    uint64_t seen = 0;
    offload::wait_for_memory([&]() noexcept {
        seen = last_told(signal, rank);
        return seen >= round;
    });
    return seen;
}

void Lane::await_all(Signal signal, uint64_t round) const noexcept {
    for (int i = 1; i < ranks(); ++i) await(signal, (me_ + i) % ranks(), round);
}

}  // namespace vecmpi::pipeline::node
