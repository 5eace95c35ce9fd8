// SPDX-License-Identifier: BSD-3-Clause
// Datatypes as the library has shown them to UCX, and what becomes of their plans. Inside
// src/datatype and its tests only.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plan_making.hpp"

namespace vecmpi::datatype {

enum class Stage : uint8_t {
    counting,  // what the library spends on its messages
    wanted,    // the next call of the program makes the plan
    making,
    made,     // the plan is yet to be compared with what the library packs
    serving,  // library and plan, until the trial is over
    library,  // for good
};

struct MessageType {
    MessageType(void* of, uint64_t worth) noexcept : context(of), worth_ns(worth) {}
    void* const context;  // the library's
    std::atomic<Stage> stage{Stage::counting};
    std::atomic<uint64_t> spent_ns{0}, worth_ns;
    std::atomic<MPI_Count> compared_bytes{0};
    std::unique_ptr<HeldPlan> held;  // written before the stage that names it

    // Under the lock of MessageTypes.
    uint64_t ucx_type = 0;
    MPI_Datatype handle = MPI_DATATYPE_NULL;  // null: nobody holds one
    bool is_destroyed = false;                // while its plan was being made
};

// All of them. The lock is held for moments, and never while the library is called: callbacks take
// it too.
class MessageTypes {
  public:
    library::UcxStatus create(library::UcxCreate create, const library::UcxOps& ops, void* context,
                              uint64_t* ucx_type) noexcept;
    void destroy(library::UcxDestroy destroy, uint64_t ucx_type) noexcept;
    void give_handle(uint64_t ucx_type, MPI_Datatype handle) noexcept;
    // No plan is made of this handle any more; waits for one that is being made.
    void forget_handle(MPI_Datatype handle) noexcept;

    void want_plan(MessageType& type) noexcept;
    // Null: no more are wanted.
    MessageType* begin_making(MPI_Datatype* handle) noexcept;
    void end_making(MessageType* type, std::optional<MadePlan> made) noexcept;

    // The library's own, the same for all its types.
    const library::UcxOps& library() const noexcept { return library_; }

  private:
    static MessageType* find(const auto& map, auto key) noexcept {
        const auto found = map.find(key);
        return found == map.end() ? nullptr : found->second;
    }
    MessageType* take_out(MessageType* type) noexcept;
    void stop_wanting(MessageType& type) noexcept;
    void note_wanted() noexcept;

    std::mutex mutex_;
    std::condition_variable made_;
    library::UcxOps library_{};
    std::unordered_map<uint64_t, MessageType*> by_ucx_type_;
    std::unordered_map<void*, MessageType*> by_context_;
    std::unordered_map<MPI_Datatype, MessageType*> by_handle_;
    std::vector<MessageType*> wanted_;
};

inline MessageTypes& message_types() {
    static auto* const types = new MessageTypes;  // outlives all callers
    return *types;
}

}  // namespace vecmpi::datatype
