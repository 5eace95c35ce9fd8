// SPDX-License-Identifier: BSD-3-Clause
// Signals of slot rings: published, awaited.
#include "staging_buffer.hpp"

#include <algorithm>

#include "offload/api.hpp"

namespace vecmpi::pipeline::node {

namespace {
void map(unsigned char* memory, size_t bytes, Touch touch) noexcept {
    constexpr size_t page_bytes = 4096;
    for (size_t at = 0; at < bytes; at += page_bytes) {
        const std::atomic_ref byte(memory[at]);
        if (touch == Touch::writes)
            byte.store(0, std::memory_order_relaxed);
        else
            byte.load(std::memory_order_relaxed);
    }
}
}  // namespace

void map_small_slots(StagingBuffer& buffer, Touch touch) noexcept {
    map(buffer.small, sizeof buffer.small, touch);
}

void map_large_slots(StagingBuffer& buffer, const RingShape& large, Touch touch) noexcept {
    map(buffer.large(), large.bytes(), touch);
}

void SlotRing::await_free(uint64_t round) noexcept {
    if (round <= all_read_ + slots()) return;
    uint64_t least = UINT64_MAX;
    for (int rank = 0; rank < ranks(); ++rank)
        least = std::min(least, await(Signal::read, rank, round - slots()));
    all_read_ = least;
}

void SlotRing::publish(Signal signal, uint64_t round) noexcept {
    round_of(me_, signal).store(round, std::memory_order_release);  // pairs with last_published()
    doors_.ring_all();
}

uint64_t SlotRing::last_published(Signal signal, int rank) const noexcept {
    return round_of(rank, signal).load(std::memory_order_acquire);  // pairs with publish()
}

uint64_t SlotRing::await(Signal signal, int rank, uint64_t round) const noexcept {
    uint64_t seen = 0;
    const auto look = [&]() noexcept {
        seen = last_published(signal, rank);
        return seen >= round;
    };
    if (fiber_ == nullptr)
        offload::wait_for_memory(look);
    else
        fiber_->await(look);
    return seen;
}

void SlotRing::await_all(Signal signal, uint64_t round) const noexcept {
    for (int i = 1; i < ranks(); ++i) await(signal, (me_ + i) % ranks(), round);
}

void SlotRing::make_progress() const noexcept {
    if (fiber_ == nullptr) offload::make_progress();
}

}  // namespace vecmpi::pipeline::node
