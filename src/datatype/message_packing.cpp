// SPDX-License-Identifier: BSD-3-Clause
// Messages of datatypes with gaps, packed into UCX's buffers and unpacked from them piece by piece,
// by a plan or by the library. UCX calls from within the library, which holds its locks: nothing
// here calls MPI.
#include "message_packing.hpp"

#include <algorithm>
#include <new>

#include "message_types.hpp"

namespace vecmpi::datatype {

namespace {

enum class Mover : uint8_t {
    plan,
    library,   // timed for the trial
    compared,  // the library; the plan must pack the same bytes
};

struct Message {
    MessageType& type;
    const kernels::Direction direction;
    char* const memory;
    const MPI_Count count, bytes;
    void* const library_state;  // finish() gives it back, whoever moved the message
    Mover mover = Mover::compared;
    bool differs = false;
    Trial* trial = nullptr;  // null: not timed
    uint64_t ns = 0;
    MPI_Count moved = 0;
};

// The lowest bit is set in states of ours, and clear in the library's.
constexpr uintptr_t ours = 1;
void* state_of(Message* message) noexcept {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(message) | ours);
}
Message* message_of(void* state) noexcept {
    const auto bits = reinterpret_cast<uintptr_t>(state);
    return (bits & ours) != 0 ? reinterpret_cast<Message*>(bits & ~ours) : nullptr;
}

void tally(MessageType& type, size_t bytes) noexcept {
    const uint64_t ns = library_ns(static_cast<int64_t>(bytes));
    const uint64_t spent_ns = type.spent_ns.fetch_add(ns, std::memory_order_relaxed) + ns;
    if (spent_ns >= type.worth_ns.load(std::memory_order_relaxed)) message_types().want_plan(type);
}

// May the plan serve it? The library keeps MPI_BOTTOM and what it may refuse. It unpacks elements
// that may overlap, and packs where nobody knows at which bytes a piece may end.
bool may_serve(const HeldPlan& held, kernels::Direction direction, const void* memory,
               size_t count) noexcept {
    MPI_Count bytes = 0;
    return memory != nullptr && count > 0 && count <= INT64_MAX &&
           !__builtin_mul_overflow(held.plan.bytes(), static_cast<MPI_Count>(count), &bytes) &&
           (direction == kernels::Direction::pack
                ? held.cut_bytes != 0
                : static_cast<MPI_Count>(count) <= held.plan.most_to_unpack());
}

// Null: the library alone serves it.
Message* begin_message(MessageType& type, kernels::Direction direction, void* memory, size_t count,
                       void* library_state) noexcept {
    const Stage stage = type.stage.load(std::memory_order_acquire);
    if (stage != Stage::made && stage != Stage::serving) return nullptr;
    if (!may_serve(*type.held, direction, memory, count)) return nullptr;
    const auto elements = static_cast<MPI_Count>(count);
    const MPI_Count bytes = elements * type.held->plan.bytes();
    Trial& trial = type.held->trial(direction, bytes);
    if (stage == Stage::serving && has_won(trial, Packer::library)) return nullptr;
    auto* const message = new (std::nothrow)
        Message{type, direction, static_cast<char*>(memory), elements, bytes, library_state};
    if (message == nullptr || stage == Stage::made) return message;
    message->mover = Mover::plan;
    if (has_won(trial, Packer::plan)) return message;
    message->trial = &trial;
    if (whose_turn(trial) == Packer::library) message->mover = Mover::library;
    return message;
}

// How many of `most` bytes from `offset` on a plan packs: to the end, or to where a piece may end.
// 0: none may end there, and the library must pack.
size_t bytes_of_piece(const Message& message, size_t offset, size_t most) noexcept {
    const size_t whole = static_cast<size_t>(message.bytes), rest = whole - std::min(offset, whole);
    if (rest <= most) return rest;
    const size_t over = (offset + most) % static_cast<size_t>(message.type.held->cut_bytes);
    return over < most ? most - over : 0;
}

// The plan moves `bytes`; by_library() returns how many it has moved.
template <class ByLibrary>
size_t move_piece(Message& message, void* part, size_t offset, size_t bytes,
                  ByLibrary by_library) noexcept {
    const uint64_t begun_ns = message.trial != nullptr ? monotonic_ns() : 0;
    size_t moved = bytes;
    if (message.mover == Mover::plan && bytes != 0)
        message.type.held->plan.copy(message.direction, part, message.memory, message.count,
                                     static_cast<MPI_Count>(offset), static_cast<MPI_Count>(bytes));
    else
        moved = by_library();
    if (message.trial != nullptr) message.ns += monotonic_ns() - begun_ns;
    if (message.mover == Mover::compared &&
        !packs_to(message.type.held->plan, message.memory, message.count,
                  static_cast<MPI_Count>(offset), static_cast<MPI_Count>(moved),
                  static_cast<const char*>(part)))
        message.differs = true;
    message.moved += static_cast<MPI_Count>(moved);
    return moved;
}

// The first messages that the plan could have served show whether it may serve. A receive may be
// longer than its message. A difference is final, whatever other messages have shown.
void judge(const Message& message) noexcept {
    MessageType& type = message.type;
    if (message.differs) {
        if (type.stage.exchange(Stage::library) != Stage::library) count(Counter::decline_plan);
        return;
    }
    const MPI_Count compared = type.compared_bytes.fetch_add(message.moved) + message.moved;
    Stage made = Stage::made;
    if (message.moved == message.bytes || compared >= compared_at_once)
        if (type.stage.compare_exchange_strong(made, Stage::serving)) count(Counter::plans);
}

// ---- what UCX calls ----------------------------------------------------------------------------

void* start(void* context, kernels::Direction direction, void* memory, size_t count) noexcept {
    auto& type = *static_cast<MessageType*>(context);
    const library::UcxOps& library = message_types().library();
    void* const state = direction == kernels::Direction::pack
                            ? library.start_pack(type.context, memory, count)
                            : library.start_unpack(type.context, memory, count);
    if (state == nullptr) return nullptr;
    if (Message* const message = begin_message(type, direction, memory, count, state))
        return state_of(message);
    if (type.stage.load(std::memory_order_relaxed) == Stage::counting)
        tally(type, library.packed_size(state));
    return state;
}

void* start_pack(void* context, const void* memory, size_t count) {
    return start(context, kernels::Direction::pack, const_cast<void*>(memory), count);
}

void* start_unpack(void* context, void* memory, size_t count) {
    return start(context, kernels::Direction::unpack, memory, count);
}

size_t packed_size(void* state) {
    const Message* const message = message_of(state);
    return message != nullptr ? static_cast<size_t>(message->bytes)
                              : message_types().library().packed_size(state);
}

size_t pack(void* state, size_t offset, void* to, size_t most) {
    const library::UcxOps& library = message_types().library();
    Message* const message = message_of(state);
    if (message == nullptr) return library.pack(state, offset, to, most);
    const size_t bytes =
        message->mover == Mover::plan ? bytes_of_piece(*message, offset, most) : most;
    return move_piece(*message, to, offset, bytes, [&]() noexcept {
        return library.pack(message->library_state, offset, to, most);
    });
}

library::UcxStatus unpack(void* state, size_t offset, const void* from, size_t bytes) {
    const library::UcxOps& library = message_types().library();
    Message* const message = message_of(state);
    if (message == nullptr) return library.unpack(state, offset, from, bytes);
    library::UcxStatus status = 0;
    const auto whole = static_cast<size_t>(message->bytes);
    const size_t fitting = std::min(bytes, whole - std::min(offset, whole));
    move_piece(*message, const_cast<void*>(from), offset, fitting, [&]() noexcept {
        status = library.unpack(message->library_state, offset, from, bytes);
        return status == 0 ? bytes : 0;
    });
    return status;
}

void finish(void* state) {
    const library::UcxOps& library = message_types().library();
    Message* const message = message_of(state);
    if (message == nullptr) return library.finish(state);
    if (message->mover == Mover::compared) judge(*message);
    if (message->mover == Mover::plan) count(Counter::plan_messages);
    if (message->trial != nullptr && message->moved != 0)
        note_turn(*message->trial, message->mover == Mover::plan ? Packer::plan : Packer::library,
                  message->ns, message->moved);
    void* const library_state = message->library_state;
    delete message;
    library.finish(library_state);  // the last message of a type may destroy it
}

}  // namespace

constinit const library::UcxOps packing_ops = {start_pack, start_unpack, packed_size,
                                               pack,       unpack,       finish};

}  // namespace vecmpi::datatype
