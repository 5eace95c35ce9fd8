// SPDX-License-Identifier: BSD-3-Clause
// Progress for threads that wait for something other than a request of the program, or for nothing.
#include "engine.hpp"

namespace vecmpi::offload {

namespace {

std::atomic<MPI_Request> never_complete{MPI_REQUEST_NULL};  // any thread may test it

MPI_Request start_request_for_ever() noexcept {
    MPI_Request request = MPI_REQUEST_NULL;
    real.Grequest_start([](void*, MPI_Status*) { return int{MPI_SUCCESS}; },
                        [](void*) { return int{MPI_SUCCESS}; },
                        [](void*, int) { return int{MPI_SUCCESS}; }, nullptr, &request);
    return request;
}

void end_request_for_ever(MPI_Request request) noexcept {
    if (request == MPI_REQUEST_NULL) return;
    real.Grequest_complete(request);
    real.Wait(&request, MPI_STATUS_IGNORE);
}

}  // namespace

uint32_t looks_by_itself = 1;

MPI_Request pending_for_ever() noexcept {
    MPI_Request request = never_complete.load(std::memory_order_relaxed);
    if (request != MPI_REQUEST_NULL) return request;
    // Without a lock: the library's may be held here, and making a request may need it.
    const MPI_Request made = start_request_for_ever();
    if (never_complete.compare_exchange_strong(request, made, std::memory_order_relaxed))
        return made;
    end_request_for_ever(made);
    return request;
}

void end_pending_for_ever() noexcept {
    end_request_for_ever(never_complete.exchange(MPI_REQUEST_NULL, std::memory_order_relaxed));
}

void poll_library() noexcept {
    MPI_Request request = never_complete.load(std::memory_order_relaxed);
    int flag;
    if (request != MPI_REQUEST_NULL)
        real.Test(&request, &flag, MPI_STATUS_IGNORE);
    else  // in a callback of MPI_Finalize
        real.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

void wait_until(bool (*look)(void* context), void* context) noexcept {
    engine->wait_until([=](bool may_call) noexcept { return may_call && look(context); });
}

void wait_for_memory_on_ladder(bool (*look)(const void* context), const void* context) noexcept {
    engine->wait_until(
        [=](bool may_call) noexcept {
            if (look(context)) return true;
            if (may_call) poll_library();
            return look(context);
        },
        WaitsFor::memory);
}

void make_progress() noexcept {
    if (engine->thread.exists() && engine->has_work()) return;  // it may be parked otherwise
    engine->wait_until([](bool may_call) noexcept {
        if (may_call) poll_library();
        return true;
    });
}

constinit PollsOwed polls_owed;

void forget_returns_from_memory() noexcept {
    polls_owed.polled_after.store(polls_owed.returned.load(std::memory_order_relaxed),
                                  std::memory_order_relaxed);
}

// A look in vain polls. So looks until a few in a row have moved nothing. Not all libraries show
// what a poll has moved, and such a poll may take one message only.
int look_again(uint64_t returned, const int* found, int (*look)(const void* context),
               const void* context) noexcept {
    constexpr unsigned most_in_vain = 4, most_looks = 1000;
    unsigned in_vain = 0;
    int error = MPI_SUCCESS;
    for (unsigned looks = 0; in_vain < most_in_vain && looks < most_looks; ++looks) {
        const uint64_t events = library::library_events;
        error = look(context);
        in_vain = library::library_events == events ? in_vain + 1 : 0;
        if (error != MPI_SUCCESS || *found != 0) return error;
    }
    polls_owed.polled_after.store(returned, std::memory_order_release);
    return error;
}

void rest_after_failing_look() noexcept {
    if (engine_runs() && !engine->facts.library_may_wait) engine->give_way_if_crowded();
}

}  // namespace vecmpi::offload
