// SPDX-License-Identifier: BSD-3-Clause
// The window: the library's requests that are active, and their slots. Never calls the library.
#pragma once

#include "slots.hpp"

namespace vecmpi::offload {

// Requests that one Testsome looks at. The next look takes the following ones.
constexpr unsigned testsome_window = 64;

// Request i belongs to slot i. The engine's owner reads it; changes need the right to issue
// (Engine::IssueScope). While the owner is in the library's Testsome another thread may add to the
// end: the size is stored with release, after the request.
class RequestWindow {
  public:
    uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }
    bool empty() const noexcept { return size_.load(std::memory_order_relaxed) == 0; }

    void add(Slot* slot, uint32_t slot_index) noexcept {
        const uint32_t place = size_.load(std::memory_order_relaxed);
        slot->window_index = place;
        requests_[place] = slot->mpi_request;
        slots_[place] = static_cast<uint16_t>(slot_index);
        if (slot->persistent) ++persistent_;
        slot->state.store(SlotState::active, std::memory_order_release);
        size_.store(place + 1, std::memory_order_release);  // pairs with size()
    }
    // The last one takes the place that becomes free.
    void remove(const Slot* slot, SlotPool& pool) noexcept {
        const uint32_t last = size_.load(std::memory_order_relaxed) - 1;
        const uint32_t place = slot->window_index;
        requests_[place] = requests_[last];
        slots_[place] = slots_[last];
        pool.at(slots_[place])->window_index = place;
        if (slot->persistent) --persistent_;
        size_.store(last, std::memory_order_relaxed);
    }
    bool has_persistent() const noexcept { return persistent_ != 0; }
    uint16_t slot_index(uint32_t place) const noexcept { return slots_[place]; }
    void reset() noexcept {
        size_.store(0, std::memory_order_relaxed);
        persistent_ = 0;
        cursor_ = 0;
    }

    // What one look looks at: the next testsome_window requests.
    struct Part {
        int count;
        MPI_Request* requests;
        const uint16_t* slots;  // indices in the pool
    };
    Part next_part() noexcept {
        const uint32_t active = size();
        if (cursor_ >= active) cursor_ = 0;
        const uint32_t base = cursor_, count = std::min(active - base, testsome_window);
        cursor_ = base + count;
        return {static_cast<int>(count), requests_ + base, slots_ + base};
    }

  private:
    std::atomic<uint32_t> size_{0};
    uint32_t cursor_ = 0;      // the owner's
    uint32_t persistent_ = 0;  // of those in it
    MPI_Request requests_[slot_count];
    uint16_t slots_[slot_count];
};

}  // namespace vecmpi::offload
