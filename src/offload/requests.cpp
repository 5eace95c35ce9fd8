// SPDX-License-Identifier: BSD-3-Clause
// What a program may do with a request besides completing it: start, free, cancel, ask, mark
// partitions ready.
#include "base/api/needs.hpp"
#include "engine.hpp"
#include "job_requests.hpp"
#include "statuses.hpp"

namespace vecmpi::offload {

namespace {

// The slot of a virtual request, or null for a real one (or where no engine runs).
Slot* slot_of(MPI_Request request) noexcept {
    return engine_runs() && is_virtual(request) ? engine->pool.find(request) : nullptr;
}

bool holds_virtual(int count, const MPI_Request requests[]) noexcept {
    for (int i = 0; requests && i < count; ++i)
        if (slot_of(requests[i])) return true;
    return false;
}

// Runs `work` after everything that was posted before is issued: as the owner, or without owning
// the engine where callers complete.
template <class Work>
auto with_library(Work work) noexcept {
    const auto issue_and_work = [&]() noexcept {
        engine->drain();
        return work();
    };
    if (this_thread.is(Inside::engine)) return issue_and_work();
    if (engine->own()) return engine->as_owner(issue_and_work);
    engine->wait_until_issued();
    const Within library(Inside::library);
    return work();
}

// The library's own call, after everything that was posted before.
template <class LibraryCall>
int directly(Call call, LibraryCall library_call) noexcept {
    DirectCall scope(call);
    return library_call();
}

void start_slot(Slot* slot) noexcept {
    slot->error = MPI_SUCCESS;
    slot->floats = float_environment();
    engine->push(slot);
    // In a callback the next call goes to the library at once, and must not overtake this one.
    if (is_reentrant())
        with_library([]() noexcept {});
    else if (engine->thread.stands_back())
        engine->wait_until_issued();
}

}  // namespace

void note_file_requests() noexcept {
    if (engine) engine->note(RequestKind::generalized);
}

void note_generalized_requests() noexcept {
    note_file_requests();
    if (engine_runs() && engine->facts.queues) engine->let_callers_complete();
}

void note_poll_functions() noexcept {
    note_generalized_requests();
    if (engine_runs()) engine->thread.let_stand_back();
}

void note_op(MPI_Op op) noexcept {
    if (!library::is_op_handle(op) || library::is_builtin_op(op)) return;
    if (engine->facts.queues) engine->let_callers_complete();
    if (engine->facts.operators_lock_library) engine->thread.let_stand_back();
}

void note_persistent_requests() noexcept {
    if (engine) engine->note(RequestKind::persistent);
}

void note_earlier_requests() noexcept {
    note_generalized_requests();
    note_persistent_requests();
}

void adopt_persistent(const CallFacts& facts, MPI_Request* app_request) noexcept {
    if (!engine_runs()) return;
    note_op(facts.op);
    engine->note(RequestKind::persistent);
    if (is_small_message(facts)) return;
    if (is_reentrant() || !engine_has_thread() || *app_request == MPI_REQUEST_NULL) return;
    if (session_was_opened()) return count(Counter::decline_session);
    if (!window_serves(comm_traits(facts.comm).handler))
        return count(Counter::decline_error_handler);
    Slot* slot = engine->pool.take();
    if (!slot) return;
    slot->mpi_request = *app_request;
    slot->persistent = true;
    slot->takes_floats = true;  // the request does not say whether it reduces
    slot->state.store(SlotState::inactive, std::memory_order_release);
    set_need(Need::messages, true);
    engine->note(RequestKind::virtual_persistent);
    *app_request = engine->pool.handle(slot);
}

int start(MPI_Request* request) noexcept {
    Slot* slot = request ? slot_of(*request) : nullptr;
    if (!slot || !slot->persistent || state_of(slot) != SlotState::inactive)
        return directly(Call::Start, [&]() noexcept { return real.Start(request); });
    if (slot->is_job)
        start_job(slot);
    else
        start_slot(slot);
    return MPI_SUCCESS;
}

int start_all(int count, MPI_Request requests[]) noexcept {
    if (!holds_virtual(count, requests))
        return directly(Call::Startall, [&]() noexcept { return real.Startall(count, requests); });
    for (int i = 0; i < count; ++i)
        if (const int rc = start(&requests[i]); rc != MPI_SUCCESS) return rc;
    return MPI_SUCCESS;
}

namespace {

// Release: pairs with the load in Engine::unowned().
void note_freed_ending() noexcept {
    freed_endings.fetch_add(1, std::memory_order_release);
    set_need(Need::freed_requests, true);
}

}  // namespace

std::atomic<uint32_t> freed_endings{0};

void look_after_freed() noexcept {
    if (engine_runs() && !is_reentrant()) engine->look();
}

// The real request goes too; an active operation still completes (MPI 4.0, 3.7.3).
int request_free(MPI_Request* request) noexcept {
    Slot* slot = request ? slot_of(*request) : nullptr;
    if (!slot)
        return directly(Call::Request_free, [&]() noexcept { return real.Request_free(request); });
    if (slot->is_job) {
        abandon_job(slot);
        *request = MPI_REQUEST_NULL;
        return MPI_SUCCESS;
    }
    return with_library([&]() noexcept {
        const bool active = state_of(slot) == SlotState::active;
        // The library walks the window right now, or the memory of a message is still in use.
        if (active && (slot->has_ending || engine->is_polling())) {
            if (slot->has_ending) note_freed_ending();
            // The last thing: now another thread may end it. Pairs with ask_forgotten().
            slot->forgotten.store(true, std::memory_order_release);
            *request = MPI_REQUEST_NULL;
            return int{MPI_SUCCESS};
        }
        MPI_Request freed = slot->mpi_request;
        if (freed != MPI_REQUEST_NULL)
            if (const int rc = real.Request_free(&freed); rc != MPI_SUCCESS) return rc;
        if (active) engine->forget(slot);
        engine->pool.give(slot);
        *request = MPI_REQUEST_NULL;
        return int{MPI_SUCCESS};
    });
}

// A collective cannot be cancelled (MPI 4.0, 6.12): the library refuses the handle.
int cancel(MPI_Request* request) noexcept {
    Slot* slot = request ? slot_of(*request) : nullptr;
    if (!slot || slot->is_job)
        return directly(Call::Cancel, [&]() noexcept { return real.Cancel(request); });
    return with_library([slot]() noexcept {
        if (state_of(slot) == SlotState::done) return int{MPI_SUCCESS};  // too late
        return real.Cancel(&slot->mpi_request);
    });
}

int request_get_status(MPI_Request request, int* flag, MPI_Status* status) noexcept {
    Slot* slot = slot_of(request);
    if (!slot || !flag)
        return directly(Call::Request_get_status,
                        [&]() noexcept { return real.Request_get_status(request, flag, status); });
    if (state_of(slot) != SlotState::done) engine->look(slot);
    const SlotState state = state_of(slot);
    *flag = state == SlotState::done || state == SlotState::inactive;
    if (!*flag) engine->give_way_if_crowded();
    if (state == SlotState::inactive) set_empty(status);
    if (state != SlotState::done) return MPI_SUCCESS;
    copy_status(slot->status, status);
    return slot->error;
}

// ---- Request_get_status on several (MPI 4.1, 3.7.6): a library that has one has all three -------

namespace {

// Null and inactive ones are complete as well, and nobody waits for them.
struct Look {
    bool active, complete;
    int error;
};

Look look_at(MPI_Request request, MPI_Status* status) noexcept {
    int complete = 0, index = MPI_UNDEFINED;
    const Slot* slot = slot_of(request);
    const bool active = slot && state_of(slot) != SlotState::inactive;
    if (slot) {
        const int error = request_get_status(request, &complete, status);
        return {active, complete != 0, error};
    }
    const int error = directly(Call::Request_get_status_any, [&]() noexcept {
        return real.Request_get_status_any(1, &request, &index, &complete, status);
    });
    return {!complete || index != MPI_UNDEFINED, complete != 0, error};
}

// mpi.h of MPICH 4.2 lacks the standard's const.
MPI_Request* without_const(const MPI_Request requests[]) noexcept {
    return const_cast<MPI_Request*>(requests);
}

}  // namespace

int request_get_status_all(int count, const MPI_Request requests[], int* flag,
                           MPI_Status statuses[]) noexcept {
    if (!flag || !holds_virtual(count, requests))
        return directly(Call::Request_get_status_all, [&]() noexcept {
            return real.Request_get_status_all(count, without_const(requests), flag, statuses);
        });
    bool failed = false;
    *flag = 1;
    for (int i = 0; i < count; ++i) {
        const Look look = look_at(requests[i], status_at(statuses, i));
        if (!look.complete && look.error != MPI_SUCCESS) return look.error;  // no request
        if (!look.complete) *flag = 0;
        failed |= look.error != MPI_SUCCESS;
    }
    if (!failed) return MPI_SUCCESS;
    ErrorCollector errors(statuses);  // once more: what was pending may be complete by now
    *flag = 1;
    for (int i = 0; i < count; ++i) {
        const Look look = look_at(requests[i], status_at(statuses, i));
        if (!look.complete) *flag = 0;
        errors.add(i, look.complete ? look.error : MPI_ERR_PENDING);
    }
    return errors.result();
}

int request_get_status_any(int count, const MPI_Request requests[], int* index, int* flag,
                           MPI_Status* status) noexcept {
    if (!index || !flag || !holds_virtual(count, requests))
        return directly(Call::Request_get_status_any, [&]() noexcept {
            return real.Request_get_status_any(count, without_const(requests), index, flag, status);
        });
    *index = MPI_UNDEFINED;
    *flag = 1;  // as where none is active
    for (int i = 0; i < count; ++i) {
        const Look look = look_at(requests[i], status);
        if (!look.complete && look.error != MPI_SUCCESS) return look.error;  // no request
        if (!look.active) continue;
        *flag = look.complete;
        if (!look.complete) continue;
        *index = i;
        return look.error;
    }
    return MPI_SUCCESS;
}

int request_get_status_some(int incount, const MPI_Request requests[], int* outcount, int indices[],
                            MPI_Status statuses[]) noexcept {
    if (!outcount || !indices || !holds_virtual(incount, requests))
        return directly(Call::Request_get_status_some, [&]() noexcept {
            return real.Request_get_status_some(incount, without_const(requests), outcount, indices,
                                                statuses);
        });
    bool any_active = false;
    int found = 0;
    ErrorCollector errors(statuses);
    for (int i = 0; i < incount; ++i) {
        const Look look = look_at(requests[i], status_at(statuses, found));
        if (!look.complete && look.error != MPI_SUCCESS) return look.error;  // no request
        any_active |= look.active;
        if (!look.active || !look.complete) continue;
        errors.add(found, look.error);
        indices[found++] = i;
    }
    *outcount = any_active ? found : MPI_UNDEFINED;
    return errors.result();
}

// MPICH's: 1 or 0, no error code, and no progress: poll functions call it in the midst of that.
int request_is_complete(MPI_Request request) noexcept {
    Slot* slot = slot_of(request);
    return slot ? engine->is_complete(slot) : real.X_Request_is_complete(request);
}

// ---- partitioned communication (MPI 4.0, 4.2) --------------------------------------------------

namespace {

// The program has started the request, so the partitions are marked at once. mark() gets the
// library's own request.
template <class Mark>
int mark_ready(Call call, MPI_Request request, Mark mark) noexcept {
    Slot* slot = slot_of(request);
    if (!slot) return directly(call, [&]() noexcept { return mark(request); });
    return with_library([&]() noexcept { return mark(slot->mpi_request); });
}

}  // namespace

int pready(int partition, MPI_Request request) noexcept {
    return mark_ready(Call::Pready, request, [=](MPI_Request mpi_request) noexcept {
        return real.Pready(partition, mpi_request);
    });
}

int pready_range(int low, int high, MPI_Request request) noexcept {
    return mark_ready(Call::Pready_range, request, [=](MPI_Request mpi_request) noexcept {
        return real.Pready_range(low, high, mpi_request);
    });
}

int pready_list(int length, const int partitions[], MPI_Request request) noexcept {
    auto* list = const_cast<int*>(partitions);  // MPICH 4.0 declares it without const
    return mark_ready(Call::Pready_list, request, [=](MPI_Request mpi_request) noexcept {
        return real.Pready_list(length, list, mpi_request);
    });
}

int parrived(MPI_Request request, int partition, int* flag) noexcept {
    Slot* slot = slot_of(request);
    if (!slot)
        return directly(Call::Parrived, [=]() noexcept {
            return look_once(flag,
                             [=]() noexcept { return real.Parrived(request, partition, flag); });
        });
    return with_library([&]() noexcept {
        engine->look(slot);
        const AskScope scope(*slot);
        const SlotState state = state_of(slot);
        // Done: all partitions have arrived, and the library's own request is inactive again.
        *flag = state == SlotState::done;
        if (*flag || (state == SlotState::active && !scope.is_ours())) return int{MPI_SUCCESS};
        return real.Parrived(slot->mpi_request, partition, flag);
    });
}

}  // namespace vecmpi::offload
