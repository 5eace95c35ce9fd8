// SPDX-License-Identifier: BSD-3-Clause
// What one-sided transfers of a window hold until they are complete. Inside src/datatype and its
// tests only.
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <unordered_map>

#include "datatype/api.hpp"
#include "transfer_trials.hpp"

namespace vecmpi::datatype {

// Packed bytes that the library reads, or writes, until the transfer is complete at its origin.
struct HeldTransfer {
    PackMemory packed;
    PlanReference plan;  // of what is to be unpacked; else null
    void* origin = nullptr;
    MPI_Count count = 0;
    uint64_t number = 0;  // of the transfers of its window
};

class WindowTransfers {
  public:
    explicit WindowTransfers(int ranks) noexcept : ranks_(ranks) {}
    ~WindowTransfers();
    WindowTransfers(const WindowTransfers&) = delete;
    WindowTransfers& operator=(const WindowTransfers&) = delete;

    int ranks() const noexcept { return ranks_; }
    // MPI_Win_flush_local has left as many puts to `target` open as it may.
    bool is_full(int target) noexcept;
    // Who serves a transfer to `target`. By a plan: hold() is to follow once the library has taken
    // it, or take_back().
    TransferTrials::Choice choose(int target, uint64_t kind, MPI_Count bytes, bool is_tried,
                                  Trial::Memory memory);
    void take_back() noexcept;
    // transfer: one, or none where the library has served it by its type, which took `ns`.
    void hold(int target, std::list<HeldTransfer>& transfer, uint64_t ns, MPI_Count bytes,
              bool is_timed) noexcept;

    // Before a call that completes transfers to `target`, or to all_targets.
    struct Open {
        uint64_t last;  // number of the last one that it surely completes
        bool is_timed;
        bool needs_full_flush;  // where the call would complete them at their origin only
    };
    Open open(int target) noexcept;
    // After it: unpacks what has come, and gives memory back. A call in another thread that
    // completes the same transfers returns after that.
    void complete(int target, uint64_t last, uint64_t since_ns, EpochEnd end,
                  Completes what) noexcept;

  private:
    struct Target {
        std::list<HeldTransfer> held;  // by number
        size_t gets = 0;               // of these
        size_t left = 0;               // of these, by local flushes
        uint64_t last_timed = 0;       // by the library, in an epoch of a trial; 0: complete
    };
    static void complete_fully(Target& target, uint64_t last,
                               std::list<HeldTransfer>& gone) noexcept;
    static void complete(Target& target, uint64_t last, Completes what,
                         std::list<HeldTransfer>& gone) noexcept;
    bool is_complete() const noexcept;
    // To be called with what is open of the target before a change.
    static size_t open(const Target& target) noexcept {
        return target.held.size() + (target.last_timed != 0 ? 1 : 0);
    }

    const int ranks_;
    std::mutex mutex_;
    uint64_t number_ = 0;
    std::unordered_map<int, Target> targets_;
    TransferTrials trials_;
};

// Transfers of this process that a call is still to complete. Relaxed: who completes a transfer of
// another thread has heard of it, and so finds it counted.
extern std::atomic<size_t> open_transfers;

// Of transfers to one target.
constexpr size_t most_left_by_local_flushes = 32;

// The plan of the type, which must have been compared; null: the library's. Makes it, once the
// library has taken long enough. The buffer is the program's, and in order.
PlanReference plan_for_transfer(const void* origin, MPI_Count count, MPI_Datatype type) noexcept;

}  // namespace vecmpi::datatype
