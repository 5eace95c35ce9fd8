// SPDX-License-Identifier: BSD-3-Clause
// Plans between the library and UCX: messages of datatypes with gaps, packed into UCX's own buffers
// and unpacked out of them, piece by piece.
//
// UCX calls these functions from within the library, with the library's locks held. So nothing here
// calls MPI, but make_message_plans(), which the program's calls come by.
#include "messages.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/api/needs.hpp"
#include "offload/api.hpp"
#include "plan_steps.hpp"

namespace vecmpi::datatype {

constinit std::atomic<unsigned> message_plans_wanted{0};

namespace {

enum class Stage : uint8_t {
    counting,  // what the library spends on its messages
    wanted,    // a plan, from the next call of the program
    making,
    made,  // and not yet compared with what the library packs
    serving,
    library,  // for good
};

struct MessageType {
    MessageType(void* of, uint64_t worth) noexcept : context(of), worth_ns(worth) {}
    void* const context;  // the library's
    std::atomic<Stage> stage{Stage::counting};
    std::atomic<uint64_t> spent_ns{0}, worth_ns;
    std::atomic<MPI_Count> compared_bytes{0};
    std::unique_ptr<HeldPlan> held;  // written before the stage that tells of it

    // With the registry's lock.
    uint64_t ucx_type = 0;
    MPI_Datatype handle = MPI_DATATYPE_NULL;  // null: nobody holds one
    bool is_destroyed = false;                // while its plan was being made
};

}  // namespace

// All of them. Locked for moments, and never while the library is called: callbacks take the lock
// too.
class MessageTypes {
  public:
    library::UcxStatus create(library::UcxCreate create, const library::UcxOps& ops, void* context,
                              uint64_t* ucx_type) noexcept;
    void destroy(library::UcxDestroy destroy, uint64_t ucx_type) noexcept;
    void give_handle(uint64_t ucx_type, MPI_Datatype handle) noexcept;
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

namespace {

bool is_weighed() noexcept { return settings().pack == PackMode::automatic; }

MessageTypes& message_types() {
    static auto* const types = new MessageTypes;  // outlives all callers
    return *types;
}

thread_local constinit MakingMessageType* current __attribute__((tls_model("initial-exec"))) =
    nullptr;

// ---- messages ----------------------------------------------------------------------------------

enum class Mover : uint8_t {
    plan,
    library,   // timed, since a plan competes with it
    compared,  // the library, and a plan must pack the same bytes
};

struct Message {
    MessageType& type;
    const kernels::Direction direction;
    char* const memory;
    const MPI_Count count, bytes;
    void* const library_state;  // given back to the library in any case, with what it holds
    Mover mover = Mover::compared;
    bool differs = false;
    Contest* contest = nullptr;  // null: not timed
    uint64_t ns = 0;
    MPI_Count moved = 0;
};

// A state that is ours is told from the library's by its lowest bit.
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

// May a plan serve it, if there is one? MPI_BOTTOM is left to the library, and so is what it may
// refuse, elements that may overlap, and pieces of which nobody knows where they may end.
bool may_serve(const HeldPlan& held, kernels::Direction direction, const void* memory,
               size_t count) noexcept {
    MPI_Count bytes = 0;
    return memory != nullptr && count > 0 && count <= INT64_MAX &&
           !__builtin_mul_overflow(held.plan.bytes(), static_cast<MPI_Count>(count), &bytes) &&
           (direction == kernels::Direction::pack
                ? held.cut_bytes != 0
                : static_cast<MPI_Count>(count) <= held.plan.most_to_unpack());
}

// Null: the library's alone.
Message* begin_message(MessageType& type, kernels::Direction direction, void* memory, size_t count,
                       void* library_state) noexcept {
    const Stage stage = type.stage.load(std::memory_order_acquire);
    if (stage != Stage::made && stage != Stage::serving) return nullptr;
    if (!may_serve(*type.held, direction, memory, count)) return nullptr;
    const auto elements = static_cast<MPI_Count>(count);
    const MPI_Count bytes = elements * type.held->plan.bytes();
    Contest& contest = type.held->contest(direction, bytes);
    const Contest::Winner winner = contest.winner();
    if (stage == Stage::serving && winner == Contest::Winner::library) return nullptr;
    auto* const message = new (std::nothrow)
        Message{type, direction, static_cast<char*>(memory), elements, bytes, library_state};
    if (message == nullptr || stage == Stage::made) return message;
    message->mover = Mover::plan;
    if (winner == Contest::Winner::plan) return message;
    message->contest = &contest;
    if (contest.next() == Turn::library) message->mover = Mover::library;
    return message;
}

// What the library has moved, the plan must pack to the same bytes.
bool plan_packs(const Message& message, const void* part, size_t offset, size_t bytes) noexcept {
    const auto* const expected = static_cast<const char*>(part);
    for (size_t at = 0; at < bytes; at += compared_at_once)
        if (!packs_to(message.type.held->plan, message.memory, message.count,
                      static_cast<MPI_Count>(offset + at),
                      static_cast<MPI_Count>(std::min<size_t>(compared_at_once, bytes - at)),
                      expected + at))
            return false;
    return true;
}

// What a plan packs of `most` bytes from `offset` on: up to the end, or up to where a piece may
// end. 0: only the library knows how to go on in so small a piece.
size_t bytes_of_piece(const Message& message, size_t offset, size_t most) noexcept {
    const size_t whole = static_cast<size_t>(message.bytes), rest = whole - std::min(offset, whole);
    if (rest <= most) return rest;
    const size_t over = (offset + most) % static_cast<size_t>(message.type.held->cut_bytes);
    return over < most ? most - over : 0;
}

// by_library() returns how many bytes were moved, the plan moves `bytes`.
template <class ByLibrary>
size_t move_piece(Message& message, void* part, size_t offset, size_t bytes,
                  ByLibrary by_library) noexcept {
    const uint64_t begun_ns = message.contest != nullptr ? now_ns() : 0;
    size_t moved = bytes;
    if (message.mover == Mover::plan && bytes != 0)
        message.type.held->plan.copy(message.direction, part, message.memory, message.count,
                                     static_cast<MPI_Count>(offset), static_cast<MPI_Count>(bytes));
    else
        moved = by_library();
    if (message.contest != nullptr) message.ns += now_ns() - begun_ns;
    if (message.mover == Mover::compared && !plan_packs(message, part, offset, moved))
        message.differs = true;
    message.moved += static_cast<MPI_Count>(moved);
    return moved;
}

// The first messages that a plan could have served show whether it may. A receive may be longer
// than what comes. A difference is final, whatever another message has shown meanwhile.
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
    if (message->contest != nullptr && message->moved != 0)
        message->contest->note(message->mover == Mover::plan ? Turn::plan : Turn::library,
                               message->ns, message->moved);
    void* const library_state = message->library_state;
    delete message;
    library.finish(library_state);  // the last message of a type may destroy it
}

constexpr library::UcxOps our_ops = {start_pack, start_unpack, packed_size, pack, unpack, finish};

}  // namespace

// ---- types -------------------------------------------------------------------------------------

library::UcxStatus MessageTypes::create(library::UcxCreate create, const library::UcxOps& ops,
                                        void* context, uint64_t* ucx_type) noexcept {
    const auto is_librarys = [&]() noexcept {
        const std::lock_guard lock(mutex_);
        if (library_ == library::UcxOps{}) library_ = ops;
        return library_ == ops;
    };
    MessageType* const type =
        is_librarys() ? new (std::nothrow) MessageType(context, is_weighed() ? least_worth_ns : 1)
                      : nullptr;
    if (type == nullptr) return create(&ops, context, ucx_type);
    const library::UcxStatus status = create(&our_ops, type, ucx_type);
    if (status != 0) {
        delete type;
        return status;
    }
    MessageType* dead = nullptr;
    {
        const std::lock_guard lock(mutex_);
        // MPICH 4.0.2 lets UCX forget a type only where bit 31 of its number is clear, which is an
        // address. But where the library's own type lay, there is another one now.
        if (MessageType* const before = find(by_context_, context)) dead = take_out(before);
        type->ucx_type = *ucx_type;
        try {
            by_ucx_type_[*ucx_type] = type;
            by_context_[context] = type;
        } catch (const std::bad_alloc&) {  // its few bytes may stay
        }
    }
    delete dead;
    return status;
}

// With the lock. To be deleted, or null: end_making() has it.
MessageType* MessageTypes::take_out(MessageType* type) noexcept {
    by_ucx_type_.erase(type->ucx_type);
    if (find(by_context_, type->context) == type) by_context_.erase(type->context);
    if (find(by_handle_, type->handle) == type) by_handle_.erase(type->handle);
    stop_wanting(*type);
    type->is_destroyed = type->stage.load(std::memory_order_relaxed) == Stage::making;
    return type->is_destroyed ? nullptr : type;
}

void MessageTypes::destroy(library::UcxDestroy destroy, uint64_t ucx_type) noexcept {
    MessageType* type = nullptr;
    {
        const std::lock_guard lock(mutex_);
        type = find(by_ucx_type_, ucx_type);
        if (type != nullptr) type = take_out(type);
    }
    destroy(ucx_type);
    delete type;
}

void MessageTypes::give_handle(uint64_t ucx_type, MPI_Datatype handle) noexcept {
    const std::lock_guard lock(mutex_);
    MessageType* const type = find(by_ucx_type_, ucx_type);
    if (type == nullptr) return;
    try {
        by_handle_[handle] = type;
        type->handle = handle;
    } catch (const std::bad_alloc&) {
    }
}

// Waits for whoever is asking the library about the handle: which MPICH answers though another
// thread is within it, as one that calls us from a delete function is.
void MessageTypes::forget_handle(MPI_Datatype handle) noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
        MessageType* const type = find(by_handle_, handle);
        if (type == nullptr) return;
        if (type->stage.load(std::memory_order_relaxed) != Stage::making) {
            stop_wanting(*type);
            type->handle = MPI_DATATYPE_NULL;
            by_handle_.erase(handle);
            return;
        }
        made_.wait(lock);
    }
}

// With the lock.
void MessageTypes::stop_wanting(MessageType& type) noexcept {
    if (type.stage.load(std::memory_order_relaxed) != Stage::wanted) return;
    type.stage.store(Stage::library, std::memory_order_relaxed);
    if (std::erase(wanted_, &type) != 0) note_wanted();
}

// With the lock, when there are more or fewer.
void MessageTypes::note_wanted() noexcept {
    message_plans_wanted.store(static_cast<unsigned>(wanted_.size()), std::memory_order_relaxed);
    set_need(Need::message_plans, !wanted_.empty());
}

void MessageTypes::want_plan(MessageType& type) noexcept {
    const std::lock_guard lock(mutex_);
    if (type.stage.load(std::memory_order_relaxed) != Stage::counting) return;
    type.stage.store(Stage::library, std::memory_order_relaxed);
    if (type.handle == MPI_DATATYPE_NULL) return;
    try {
        wanted_.push_back(&type);
    } catch (const std::bad_alloc&) {
        return;
    }
    type.stage.store(Stage::wanted, std::memory_order_relaxed);
    note_wanted();
}

MessageType* MessageTypes::begin_making(MPI_Datatype* handle) noexcept {
    const std::lock_guard lock(mutex_);
    if (wanted_.empty()) return nullptr;
    MessageType* const type = wanted_.back();
    wanted_.pop_back();
    note_wanted();
    type->stage.store(Stage::making, std::memory_order_relaxed);
    *handle = type->handle;
    return type;
}

// Nothing was made: out of memory, or the description is too long for what was spent so far.
void MessageTypes::end_making(MessageType* type, std::optional<MadePlan> made) noexcept {
    const bool is_final = made && made->is_final;
    if (is_final && !made->held) count(made->why);
    {
        const std::lock_guard lock(mutex_);
        if (is_final) type->held = std::move(made->held);
        if (!is_final) {  // once it is worth twice as much
            type->worth_ns.store(2 * type->spent_ns.load(std::memory_order_relaxed),
                                 std::memory_order_relaxed);
        }
        type->stage.store(!is_final    ? Stage::counting
                          : type->held ? Stage::made
                                       : Stage::library,
                          std::memory_order_release);
        if (!type->is_destroyed) type = nullptr;
    }
    delete type;
    made_.notify_all();
}

void serve_message_types() noexcept {
    static constexpr library::UcxTypeAnswers answers{create_message_type, destroy_message_type};
    if (library::may_have(library::Trait::message_types)) library::answer_ucx_types(answers);
}

library::UcxStatus create_message_type(library::UcxCreate create, const library::UcxOps& ops,
                                       void* context, uint64_t* ucx_type) noexcept {
    MakingMessageType* const making = current;
    if (making == nullptr) return create(&ops, context, ucx_type);
    return making->create(create, ops, context, ucx_type);
}

void destroy_message_type(library::UcxDestroy destroy, uint64_t ucx_type) noexcept {
    message_types().destroy(destroy, ucx_type);
}

MakingMessageType::MakingMessageType() noexcept {
    if (settings().pack != PackMode::off && offload::engine_runs() && !offload::is_reentrant())
        current = this;
}

MakingMessageType::~MakingMessageType() { current = nullptr; }

library::UcxStatus MakingMessageType::create(library::UcxCreate create, const library::UcxOps& ops,
                                             void* context, uint64_t* ucx_type) noexcept {
    if (shown_++ > 0) return create(&ops, context, ucx_type);
    const library::UcxStatus status = message_types().create(create, ops, context, ucx_type);
    if (status == 0) ucx_type_ = *ucx_type;
    return status;
}

void MakingMessageType::belongs_to(MPI_Datatype handle) noexcept {
    if (shown_ == 1) message_types().give_handle(ucx_type_, handle);
}

void make_message_plans() noexcept {
    if (offload::is_reentrant() || !offload::engine_runs()) return;
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    while (MessageType* const type = message_types().begin_making(&handle)) {
        std::optional<MadePlan> made;
        try {
            made.emplace(MadePlan{.held = nullptr, .why = Counter::decline_gpu});
            if (!offload::gpu_runtime_is_loaded())
                made = make_plan(handle, is_weighed() ? worth_describing(type->spent_ns.load())
                                                      : most_described);
        } catch (const std::exception&) {  // no memory, or no vector of that length
            made.reset();
        }
        message_types().end_making(type, std::move(made));
    }
}

void forget_message_handle(MPI_Datatype handle) noexcept { message_types().forget_handle(handle); }

}  // namespace vecmpi::datatype
