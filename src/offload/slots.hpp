// SPDX-License-Identifier: BSD-3-Clause
// Storage of queued operations and the handle values of their virtual requests. Issues and
// completes nothing.
#pragma once

#include <boost/lockfree/stack.hpp>
#include <cstddef>

#include "offload/api.hpp"

namespace vecmpi::offload {

// Life of a slot: free -> posted -> active -> done -> free. Of a persistent request: inactive ->
// posted -> active -> done -> inactive. The slot of a job is never posted. It is abandoned where
// the program frees the request while the job is under way, and free when the job is done.
enum class SlotState : uint32_t { free, posted, active, done, inactive, abandoned };

// One cache line for the engine and the waiting thread, then the arguments. The thread that took
// the slot writes everything before the push. Then the owner of the engine writes status, error and
// mpi_request, and last `done`.
struct alignas(64) Slot {
    std::atomic<SlotState>
        state;            // stored with release by the writer of the fields, loaded with acquire
    uint32_t generation;  // 1..generations-1; part of the handle, so that a stale one is noticed
    int error;
    MPI_Request mpi_request;
    MPI_Status status;
    union {
        uint32_t window_index;  // place in the engine's window while active; owner only
        MPI_Comm comm;          // of a job: whose error handler is called
    };
    union {
        IssueFunction issue;
        JobSource* source;  // of a persistent job, which owns it
    };
    Call call;
    bool persistent;
    std::atomic<bool> forgotten;  // by the program; the engine gives it back when it is complete
    bool is_job;                  // completes with a job, not in the window
    bool takes_floats;  // may do arithmetic: the offload thread computes as the poster would
    bool has_ending;    // a message: it never takes floats
    std::atomic<bool> is_asked;  // by AskScope; kept when the slot changes hands
    union {
        FloatEnvironment floats;  // the poster's, with takes_floats
        Ending* ending;           // owned, until it is complete
    };
    alignas(64) std::byte arguments[max_argument_bytes];
};
// Where handles are addresses and a status is longer it takes two lines.
static_assert(offsetof(Slot, arguments) % 64 == 0);

inline SlotState state_of(const Slot* slot) noexcept {
    return slot->state.load(std::memory_order_acquire);
}

// Where callers complete, several threads may ask the library for one request, and the one that
// finds it complete ends the library's request. So one asks at a time: a try-lock, under which the
// state is to be read again.
class AskScope {
  public:
    explicit AskScope(Slot& slot) noexcept
        : slot_(slot), asks_(!slot.is_asked.exchange(true, std::memory_order_acquire)) {}
    ~AskScope() {
        if (asks_) slot_.is_asked.store(false, std::memory_order_release);
    }
    AskScope(const AskScope&) = delete;
    AskScope& operator=(const AskScope&) = delete;
    bool is_ours() const noexcept { return asks_; }  // else another thread asks
    bool is_ours_while(SlotState state) const noexcept {
        return asks_ && state_of(&slot_) == state;
    }

  private:
    Slot& slot_;
    const bool asks_;
};

constexpr unsigned slot_index_bits = 14;
constexpr unsigned slot_count = 1u << slot_index_bits;
constexpr uint32_t generations = 1u << (26 - slot_index_bits);

// The number of a virtual request.
constexpr uint32_t request_number(uint32_t index, uint32_t generation) noexcept {
    return (generation << slot_index_bits) | index;
}
constexpr uint32_t index_of_number(uint32_t number) noexcept { return number & (slot_count - 1); }
constexpr uint32_t generation_of_number(uint32_t number) noexcept {
    return number >> slot_index_bits;
}

class SlotPool {
  public:
    SlotPool() noexcept;
    ~SlotPool();
    SlotPool(const SlotPool&) = delete;
    SlotPool& operator=(const SlotPool&) = delete;

    bool usable() const noexcept { return slots_ != nullptr; }
    // Its flags are false. Null, and counted, where all are in use.
    Slot* take() noexcept;
    void give(Slot* slot) noexcept;
    Slot* find(MPI_Request request) noexcept;  // null for a handle that is not in use
    MPI_Request handle(const Slot* slot) const noexcept {
        return library::unused_request(request_number(index(slot), slot->generation));
    }
    uint32_t index(const Slot* slot) const noexcept { return static_cast<uint32_t>(slot - slots_); }
    Slot* at(uint32_t index) noexcept { return slots_ + index; }
    void prefer_node(int numa_node) noexcept;

  private:
    Slot* find_free() noexcept;

    Slot* slots_ = nullptr;               // mapped; pages are touched on first use
    std::atomic<uint32_t> untouched_{0};  // slots from here on were never used
    boost::lockfree::stack<uint16_t, boost::lockfree::fixed_sized<true>,
                           boost::lockfree::capacity<slot_count>>
        used_;  // given back; last in, first out, so that few lines stay hot
};

}  // namespace vecmpi::offload
