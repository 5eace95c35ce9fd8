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
    library,
    compared,  // the library; the plan must pack the same bytes
};

struct Message {
    MessageType& type;
    const kernels::Direction direction;
    char* const memory;
    const MPI_Count count, bytes;
    void* const library_state;  // finish() gives it back, whoever moved the message
    Mover mover = Mover::library;
    bool is_timed = false, differs = false;
    Trial* trial = nullptr;  // of library and plan; null: there is no plan, or who moves is decided
    uint64_t ns = 0;
    MPI_Count moved = 0;

    const KeptPlan& plan() const noexcept { return *type.plan; }
    LibraryRate& rate() const noexcept { return type.rates[static_cast<size_t>(direction)]; }
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

// The library has spent so long on a type without a plan.
void tally(MessageType& type, uint64_t ns) noexcept {
    const uint64_t spent_ns = type.spent_ns.fetch_add(ns, std::memory_order_relaxed) + ns;
    if (spent_ns >= type.worth_ns.load(std::memory_order_relaxed)) message_types().want_plan(type);
}

// May the plan serve it? What the library may refuse, it has refused before it came to UCX; so a
// null address is MPI_BOTTOM. It unpacks elements that may overlap, and packs where nobody knows at
// which bytes a piece may end.
bool may_serve(const KeptPlan& kept, kernels::Direction direction, MPI_Count count) noexcept {
    return direction == kernels::Direction::pack ? kept.cut_bytes != 0
                                                 : count <= kept.plan.most_to_unpack();
}

// Who moves a message of a type that has a plan. False: the library alone, and nothing is noted.
bool choose_mover(Message& message) noexcept {
    using Proof = KeptPlan::Proof;
    const KeptPlan& kept = message.plan();
    if (!may_serve(kept, message.direction, message.count)) return false;
    const Proof proof = kept.proof.load(std::memory_order_acquire);
    if (proof == Proof::refuted) return false;
    Trial& trial = kept.trial(PackedIn::message, message.direction, message.bytes);
    if (proof == Proof::open) {
        message.mover = Mover::compared;
        return true;
    }
    if (has_won(trial, Packer::library)) return false;
    message.mover = Mover::plan;
    if (has_won(trial, Packer::plan)) return true;
    message.trial = &trial;
    message.is_timed = true;
    if (whose_turn(trial) == Packer::library) message.mover = Mover::library;
    return true;
}

// Null: the library alone serves it.
Message* begin_message(MessageType& type, kernels::Direction direction, void* memory, size_t count,
                       void* library_state) noexcept {
    const Stage stage = type.stage.load(std::memory_order_acquire);
    if (stage == Stage::library || count == 0 || count > INT64_MAX) return nullptr;
    const auto elements = static_cast<MPI_Count>(count);
    const auto packed_size = [&]() noexcept {
        return static_cast<MPI_Count>(message_types().library().packed_size(library_state));
    };
    LibraryRate& rate = type.rates[static_cast<size_t>(direction)];
    if (stage == Stage::counting && !rate.is_to_be_timed()) {
        tally(type, rate.ns_of(packed_size()));
        return nullptr;
    }
    MPI_Count bytes = 0;
    if (stage != Stage::has_plan)
        bytes = packed_size();
    else if (__builtin_mul_overflow(type.plan->plan.bytes(), elements, &bytes))
        return nullptr;
    Message message{type, direction, static_cast<char*>(memory), elements, bytes, library_state};
    if (stage != Stage::has_plan)
        message.is_timed = true;
    else if (!choose_mover(message))
        return nullptr;
    return new (std::nothrow) Message(message);
}

// How many of `most` bytes from `offset` on a plan packs: to the end, or to where a piece may end.
// 0: none may end there, and the library must pack.
size_t bytes_of_piece(const Message& message, size_t offset, size_t most) noexcept {
    const size_t whole = static_cast<size_t>(message.bytes), rest = whole - std::min(offset, whole);
    if (rest <= most) return rest;
    const size_t over = (offset + most) % static_cast<size_t>(message.plan().cut_bytes);
    return over < most ? most - over : 0;
}

// The plan moves `bytes`; by_library() returns how many it has moved.
template <class ByLibrary>
size_t move_piece(Message& message, void* part, size_t offset, size_t bytes,
                  ByLibrary by_library) noexcept {
    const uint64_t begun_ns = message.is_timed ? monotonic_ns() : 0;
    size_t moved = bytes;
    if (message.mover == Mover::plan && bytes != 0)
        message.plan().plan.copy(message.direction, part, message.memory, message.count,
                                 static_cast<MPI_Count>(offset), static_cast<MPI_Count>(bytes));
    else
        moved = by_library();
    if (message.is_timed) message.ns += monotonic_ns() - begun_ns;
    if (message.mover == Mover::compared &&
        !packs_to(message.plan(), message.memory, message.count, static_cast<MPI_Count>(offset),
                  static_cast<MPI_Count>(moved), static_cast<const char*>(part)))
        message.differs = true;
    message.moved += static_cast<MPI_Count>(moved);
    return moved;
}

// The first messages that the plan could have served show whether it may serve. A receive may be
// longer than its message. A difference is final, whatever other messages have shown.
void judge(const Message& message) noexcept {
    const KeptPlan& kept = message.plan();
    if (message.differs) {
        if (kept.proof.load() != KeptPlan::Proof::refuted) count(Counter::decline_plan);
        return prove(kept, false);
    }
    const MPI_Count compared = kept.compared_bytes.fetch_add(message.moved) + message.moved;
    const bool is_enough = message.moved == message.bytes || compared >= compared_at_once;
    if (!is_enough || kept.proof.load() != KeptPlan::Proof::open) return;
    prove(kept, true);
    count(Counter::plans);
}

// What a timed message has shown.
void note_time(const Message& message) noexcept {
    if (message.moved == 0) return;
    if (message.trial == nullptr) {
        message.rate().note(message.ns, message.moved);
        return tally(message.type, message.ns);
    }
    if (message.mover == Mover::library)
        return note_turn(*message.trial, Packer::library, message.ns, message.moved);
    note_turn(*message.trial, Packer::plan, message.ns, message.moved,
              message.plan().memory_of_turn());
    if (message.rate().is_clearly_beaten_by(message.ns, message.moved))
        award(*message.trial, Packer::plan);
}

// ---- for the report ----------------------------------------------------------------------------

// Why the library alone moves a message.
WhyLibrary why_library_alone(const MessageType& type, kernels::Direction direction, MPI_Count count,
                             MPI_Count bytes) noexcept {
    const Stage stage = type.stage.load(std::memory_order_acquire);
    if (stage == Stage::library) return type.why.load(std::memory_order_relaxed);
    if (stage != Stage::has_plan) return WhyLibrary::too_little;
    const KeptPlan& kept = *type.plan;
    if (!may_serve(kept, direction, count))
        return direction == kernels::Direction::pack ? WhyLibrary::pieces : WhyLibrary::overlap;
    if (kept.proof.load(std::memory_order_relaxed) == KeptPlan::Proof::refuted)
        return WhyLibrary::differs;
    return has_won(kept.trial(PackedIn::message, direction, bytes), Packer::library)
               ? WhyLibrary::slower
               : WhyLibrary::not_served;
}

// A message of a type that has a row. Null: the library alone moves it.
void count_in_row(const MessageType& type, const Message* message, kernels::Direction direction,
                  size_t count, void* library_state) noexcept {
    if (count == 0) return;
    const auto bytes = static_cast<MPI_Count>(message_types().library().packed_size(library_state));
    const auto counted = static_cast<uint64_t>(bytes);
    if (message == nullptr)
        return count_by_library(
            type.row, counted,
            why_library_alone(type, direction, static_cast<MPI_Count>(count), bytes));
    if (message->mover == Mover::plan) return count_by_plan(type.row, counted);
    const bool has_plan = message->trial != nullptr || message->mover == Mover::compared;
    count_by_library(type.row, counted, has_plan ? WhyLibrary::trial : WhyLibrary::too_little);
}

// ---- what UCX calls ----------------------------------------------------------------------------

void* start(void* context, kernels::Direction direction, void* memory, size_t count) noexcept {
    auto& type = *static_cast<MessageType*>(context);
    const library::UcxOps& library = message_types().library();
    void* const state = direction == kernels::Direction::pack
                            ? library.start_pack(type.context, memory, count)
                            : library.start_unpack(type.context, memory, count);
    if (state == nullptr) return nullptr;
    Message* const message = begin_message(type, direction, memory, count, state);
    if (type.row != no_row) [[unlikely]]
        count_in_row(type, message, direction, count, state);
    return message != nullptr ? state_of(message) : state;
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
    if (message->is_timed) note_time(*message);
    void* const library_state = message->library_state;
    delete message;
    library.finish(library_state);  // the last message of a type may destroy it
}

}  // namespace

constinit const library::UcxOps packing_ops = {start_pack, start_unpack, packed_size,
                                               pack,       unpack,       finish};

}  // namespace vecmpi::datatype
