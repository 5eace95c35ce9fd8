// SPDX-License-Identifier: BSD-3-Clause
// Wait and Test on one request.
#include "completion.hpp"

namespace vecmpi::offload {

Readiness readiness(const Slot* slot) noexcept {
    if (!slot) return Readiness::unknown;
    switch (state_of(slot)) {
        case SlotState::done:
            return Readiness::complete;
        case SlotState::inactive:
            return Readiness::inactive;
        default:
            return Readiness::pending;
    }
}

Readiness ask_for(Slot* slot, bool may_call) noexcept {
    if (slot && may_call && engine->callers_complete()) engine->ask(slot);
    return readiness(slot);
}

int consume(Slot* slot, MPI_Request* request, MPI_Status* status) noexcept {
    copy_status(slot->status, status);
    const int error = slot->error;
    if (slot->is_job && error != MPI_SUCCESS) note_job_error(slot->comm, error);
    if (slot->persistent) {
        slot->state.store(SlotState::inactive, std::memory_order_relaxed);
    } else {
        engine->pool.give(slot);
        *request = MPI_REQUEST_NULL;
    }
    return error;
}

bool hand_on(int count, const MPI_Request requests[]) noexcept {
    if (!engine_runs()) return true;
    if (engine->library_serves())
        return (!engine->facts.queues && !engine->jobs.were_posted()) ||
               !any_virtual(count, requests);
    return is_reentrant() && !any_virtual(count, requests);
}

namespace {

// One look at a virtual request. An offload thread that spins runs the engine, so that this thread
// only reads the state, unless callers complete.
bool look_at_slot(Slot* slot) noexcept {
    if (readiness(slot) != Readiness::pending) return true;
    if (!engine->thread.spins() || engine->callers_complete()) engine->look(slot);
    if (readiness(slot) != Readiness::pending) return true;
    engine->give_way_if_crowded();
    return false;
}

int complete_real(bool blocking, MPI_Request* request, int* flag, MPI_Status* status) noexcept {
    int rc = MPI_SUCCESS;
    run(blocking, [&](bool may_call) noexcept {
        *flag = 0;
        if (!may_call) return false;
        rc = real.Test(request, flag, status);
        return *flag != 0 || rc != MPI_SUCCESS;
    });
    return rc;
}

int complete_one(bool blocking, MPI_Request* request, int* flag, MPI_Status* status) noexcept {
    if (!is_virtual(*request)) return complete_real(blocking, request, flag, status);
    Slot* slot = engine->pool.find(*request);
    if (!slot)
        return real.Test(request, flag, status);  // the library's own error for a stale handle
    if (blocking && readiness(slot) == Readiness::pending)
        engine->wait_until([slot](bool may_call) noexcept {
            return ask_for(slot, may_call) != Readiness::pending;
        });
    *flag = blocking || look_at_slot(slot);
    if (!*flag) return MPI_SUCCESS;
    if (readiness(slot) == Readiness::inactive) {
        set_empty(status);
        return MPI_SUCCESS;
    }
    return consume(slot, request, status);
}

}  // namespace

int wait_one(MPI_Request* request, MPI_Status* status) noexcept {
    if (!request || is_missing(status) || hand_on(1, request)) return real.Wait(request, status);
    int flag;
    return after_job_errors(complete_one(true, request, &flag, status));
}

int test_one(MPI_Request* request, int* flag, MPI_Status* status) noexcept {
    if (!request || !flag || is_missing(status) || hand_on(1, request))
        return real.Test(request, flag, status);
    return after_job_errors(complete_one(false, request, flag, status));
}

}  // namespace vecmpi::offload
