// SPDX-License-Identifier: BSD-3-Clause
// The slot pool: a mapped array, a stack of the slots that were given back, and the number of slots
// that were ever used.
#include "slots.hpp"

#include <sys/mman.h>

namespace vecmpi::offload {

static_assert(sizeof(Slot) == offsetof(Slot, arguments) + max_argument_bytes);
static_assert(request_number(slot_count - 1, generations - 1) == library::unused_requests);

SlotPool::SlotPool() noexcept {
    void* memory = mmap(nullptr, sizeof(Slot) * slot_count, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    slots_ =
        memory == MAP_FAILED || !library::reserve_requests() ? nullptr : static_cast<Slot*>(memory);
}

SlotPool::~SlotPool() {
    if (slots_) munmap(slots_, sizeof(Slot) * slot_count);
}

void SlotPool::prefer_node(int numa_node) noexcept {
    prefer_numa_node(slots_, sizeof(Slot) * slot_count, numa_node);
}

Slot* SlotPool::find_free() noexcept {
    uint16_t index;
    if (used_.pop(index)) return slots_ + index;
    if (untouched_.load(std::memory_order_relaxed) >= slot_count) return nullptr;
    const uint32_t fresh = untouched_.fetch_add(1, std::memory_order_relaxed);
    if (fresh >= slot_count) {
        untouched_.store(slot_count, std::memory_order_relaxed);
        return nullptr;
    }
    slots_[fresh].generation = 1;
    return slots_ + fresh;
}

Slot* SlotPool::take() noexcept {
    Slot* slot = find_free();
    if (!slot) {
        count(Counter::decline_no_slot);
        return nullptr;
    }
    slot->error = MPI_SUCCESS;
    slot->mpi_request = MPI_REQUEST_NULL;
    slot->persistent = slot->is_job = slot->takes_floats = slot->has_ending = false;
    slot->forgotten.store(false, std::memory_order_relaxed);
    return slot;
}

void SlotPool::give(Slot* slot) noexcept {
    slot->generation = slot->generation + 1 < generations ? slot->generation + 1 : 1;
    slot->state.store(SlotState::free, std::memory_order_release);
    used_.bounded_push(static_cast<uint16_t>(index(slot)));
}

Slot* SlotPool::find(MPI_Request request) noexcept {
    const uint32_t number = library::number_of_request(request);
    Slot* slot = slots_ + index_of_number(number);
    const bool current = slot->generation == generation_of_number(number) &&
                         slot->state.load(std::memory_order_relaxed) != SlotState::free;
    return current ? slot : nullptr;
}

}  // namespace vecmpi::offload
