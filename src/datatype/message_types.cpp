// SPDX-License-Identifier: BSD-3-Clause
// Which datatypes UCX knows, with functions of ours before the library's, and when their plans are
// made: in the program's next call, since the library may not be called from within UCX.
#include "message_types.hpp"

#include <exception>
#include <new>

#include "base/api/needs.hpp"
#include "message_packing.hpp"
#include "offload/api.hpp"
#include "plans_by_handle.hpp"

namespace vecmpi::datatype {

constinit std::atomic<unsigned> message_plans_wanted{0};

namespace {

thread_local constinit MakingMessageType* current __attribute__((tls_model("initial-exec"))) =
    nullptr;

// Not taken while one thread at a time makes calls: a program may make a type for each message.
class Lock {
  public:
    explicit Lock(std::mutex& mutex) noexcept
        : lock_(may_be_called_at_once() ? std::unique_lock(mutex)
                                        : std::unique_lock<std::mutex>()) {}
    std::unique_lock<std::mutex>& taken() noexcept { return lock_; }

  private:
    std::unique_lock<std::mutex> lock_;
};

}  // namespace

void LibraryRate::note(uint64_t ns, MPI_Count bytes) noexcept {
    const uint64_t ps = 1000 * ns / static_cast<uint64_t>(bytes);
    timed_.fetch_add(1, std::memory_order_relaxed);
    uint64_t least = ps_of_byte_.load(std::memory_order_relaxed);
    while (ps < least && !ps_of_byte_.compare_exchange_weak(least, ps, std::memory_order_relaxed)) {
    }
}

uint64_t LibraryRate::ns_of(MPI_Count bytes) const noexcept {
    return ps_of_byte_.load(std::memory_order_relaxed) * static_cast<uint64_t>(bytes) / 1000;
}

bool LibraryRate::is_clearly_beaten_by(uint64_t ns, MPI_Count bytes) const noexcept {
    constexpr uint64_t clearly_ns = 2000;  // more than what was cold in the first messages
    const unsigned timed = timed_.load(std::memory_order_relaxed);
    const uint64_t times = timed < messages_timed ? 4 : 2;  // only the first one is known
    return timed != 0 && times * ns + clearly_ns < ns_of(bytes);
}

// The first ones seen are.
bool MessageTypes::is_librarys(const library::UcxOps& ops) noexcept {
    if (!knows_library_.load(std::memory_order_acquire)) {
        const std::lock_guard lock(mutex_);
        if (!knows_library_.load(std::memory_order_relaxed)) library_ = ops;
        knows_library_.store(true, std::memory_order_release);
    }
    return library_ == ops;
}

library::UcxStatus MessageTypes::create(library::UcxCreate create, const library::UcxOps& ops,
                                        void* context, uint64_t* ucx_type) noexcept {
    MessageType* const type =
        is_librarys(ops) ? new (std::nothrow) MessageType(context, first_worth_ns()) : nullptr;
    if (type == nullptr) return create(&ops, context, ucx_type);
    const library::UcxStatus status = create(&packing_ops, type, ucx_type);
    if (status != 0) {
        delete type;
        return status;
    }
    type->ucx_type = *ucx_type;
    MessageType *dead = nullptr, *dead_too = nullptr;
    {
        const Lock lock(mutex_);
        // A type of this context is gone, though UCX was not told: MPICH 4.0.2 tells it only where
        // bit 31 of the type's number, which is an address, is clear.
        if (MessageType* const before = by_context_.find(context)) dead = take_out(before);
        if (MessageType* const before = by_ucx_type_.find(*ucx_type)) dead_too = take_out(before);
        by_ucx_type_.insert(*type);
        by_context_.insert(*type);
    }
    delete dead;
    delete dead_too;
    return status;
}

// With the lock. The caller deletes what this returns; null: end_making() deletes it.
MessageType* MessageTypes::take_out(MessageType* type) noexcept {
    by_ucx_type_.erase(*type);
    by_context_.erase(*type);
    forget_handle_of(*type);
    stop_wanting(*type);
    type->is_destroyed = type->stage.load(std::memory_order_relaxed) == Stage::making;
    return type->is_destroyed ? nullptr : type;
}

void MessageTypes::destroy(library::UcxDestroy destroy, uint64_t ucx_type) noexcept {
    MessageType* type = nullptr;
    {
        const Lock lock(mutex_);
        type = by_ucx_type_.find(ucx_type);
        if (type != nullptr) type = take_out(type);
    }
    destroy(ucx_type);
    delete type;
}

void MessageTypes::give_handle(uint64_t ucx_type, MPI_Datatype handle) noexcept {
    const Lock lock(mutex_);
    MessageType* const type = by_ucx_type_.find(ucx_type);
    if (type == nullptr) return;
    if (MessageType* const before = by_handle_.find(handle)) {
        stop_wanting(*before);
        forget_handle_of(*before);
    }
    forget_handle_of(*type);
    type->handle = handle;
    by_handle_.insert(*type);
    handles_.store(by_handle_.size(), std::memory_order_relaxed);
}

// With the lock.
void MessageTypes::forget_handle_of(MessageType& type) noexcept {
    if (type.handle == MPI_DATATYPE_NULL) return;
    by_handle_.erase(type);
    handles_.store(by_handle_.size(), std::memory_order_relaxed);
    type.handle = MPI_DATATYPE_NULL;
}

void MessageTypes::give_row(uint64_t ucx_type, RowNumber row) noexcept {
    const Lock lock(mutex_);
    if (MessageType* const type = by_ucx_type_.find(ucx_type)) type->row = row;
}

void MessageTypes::give_plan(uint64_t ucx_type, const PlanReference& plan) noexcept {
    const Lock lock(mutex_);
    MessageType* const type = by_ucx_type_.find(ucx_type);
    if (type == nullptr || type->stage.load(std::memory_order_relaxed) != Stage::counting) return;
    type->plan = plan;
    type->stage.store(Stage::has_plan, std::memory_order_release);
}

// It waits for a thread that asks the library about the handle. MPICH answers that though another
// thread is within it, as is one that calls from a delete function. Who frees a handle has seen
// that it was given.
void MessageTypes::forget_handle(MPI_Datatype handle) noexcept {
    if (handles_.load(std::memory_order_relaxed) == 0) return;
    Lock lock(mutex_);
    for (;;) {
        MessageType* const type = by_handle_.find(handle);
        if (type == nullptr) return;
        if (type->stage.load(std::memory_order_relaxed) != Stage::making) {
            stop_wanting(*type);
            forget_handle_of(*type);
            return;
        }
        made_.wait(lock.taken());
    }
}

// With the lock.
void MessageTypes::stop_wanting(MessageType& type) noexcept {
    if (type.stage.load(std::memory_order_relaxed) != Stage::wanted) return;
    type.why.store(WhyLibrary::given_back, std::memory_order_relaxed);
    type.stage.store(Stage::library, std::memory_order_release);
    if (std::erase(wanted_, &type) != 0) note_wanted();
}

// With the lock, after a change of wanted_.
void MessageTypes::note_wanted() noexcept {
    message_plans_wanted.store(static_cast<unsigned>(wanted_.size()), std::memory_order_relaxed);
    set_need(Need::message_plans, !wanted_.empty());
}

void MessageTypes::want_plan(MessageType& type) noexcept {
    const Lock lock(mutex_);
    if (type.stage.load(std::memory_order_relaxed) != Stage::counting) return;
    type.why.store(WhyLibrary::given_back, std::memory_order_relaxed);
    type.stage.store(Stage::library, std::memory_order_release);
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
    const Lock lock(mutex_);
    if (wanted_.empty()) return nullptr;
    MessageType* const type = wanted_.back();
    wanted_.pop_back();
    note_wanted();
    type->stage.store(Stage::making, std::memory_order_relaxed);
    *handle = type->handle;
    return type;
}

// `made` is nothing where memory ran out, and not final where the description is too long for what
// the library has spent so far.
void MessageTypes::end_making(MessageType* type, std::optional<MadePlan> made) noexcept {
    const bool is_final = made && made->is_final;
    if (is_final && !made->plan) count(made->why);
    {
        const Lock lock(mutex_);
        if (is_final) type->plan = std::move(made->plan);
        if (is_final) type->why.store(why_library(made->why), std::memory_order_relaxed);
        if (!is_final) {  // once it is worth twice as much
            type->worth_ns.store(2 * type->spent_ns.load(std::memory_order_relaxed),
                                 std::memory_order_relaxed);
        }
        type->stage.store(!is_final    ? Stage::counting
                          : type->plan ? Stage::has_plan
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
    if (making == nullptr || making->shown_++ > 0) return create(&ops, context, ucx_type);
    const library::UcxStatus status = message_types().create(create, ops, context, ucx_type);
    if (status == 0) making->ucx_type_ = *ucx_type;
    return status;
}

void destroy_message_type(library::UcxDestroy destroy, uint64_t ucx_type) noexcept {
    message_types().destroy(destroy, ucx_type);
}

MakingMessageType::MakingMessageType() noexcept {
    if (settings().pack != PackMode::off && offload::engine_runs() && !offload::is_reentrant())
        current = this;
}

MakingMessageType::~MakingMessageType() { current = nullptr; }

uint64_t MakingMessageType::belongs_to(MPI_Datatype handle) noexcept {
    if (shown_ != 1) return 0;
    message_types().give_handle(ucx_type_, handle);
    return ucx_type_;
}

void make_message_plans() noexcept {
    if (offload::is_reentrant() || !offload::engine_runs()) return;
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    while (MessageType* const type = message_types().begin_making(&handle)) {
        std::optional<MadePlan> made;
        try {
            made = make_plan(handle, type->spent_ns.load());
        } catch (const std::exception&) {  // no memory, or no vector of that length
        }
        if (made && made->plan) give_plan(handle, made->plan);  // for MPI_Pack, and for bytes
        message_types().end_making(type, std::move(made));
    }
}

}  // namespace vecmpi::datatype
