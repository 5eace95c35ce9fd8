// SPDX-License-Identifier: BSD-3-Clause
// Jobs from the post to the completed request. What a job does is for src/pipeline.
#include "job_requests.hpp"

#include <utility>

#include "engine.hpp"
#include "statuses.hpp"

namespace vecmpi::offload {

namespace {

// The first error of the jobs that this call of the program completed. Raised when the call ends.
struct JobError {
    int error = MPI_SUCCESS;
    MPI_Comm comm = MPI_COMM_NULL;
};
thread_local constinit JobError first_job_error __attribute__((tls_model("initial-exec"))) = {};

void run_here(Job& job) noexcept {
    const FloatEnvironment floats = float_environment();
    engine->wait_until(
        [&](bool may_call) noexcept {
            if (!may_call) return false;
            if (advance_job(job, floats)) return true;
            if (job.waits_for_memory) poll_library();
            return false;
        },
        job.waits_for_memory ? WaitsFor::memory : WaitsFor::messages);
}

void give_back(Slot* slot) noexcept {
    if (slot->persistent) delete slot->source;
    engine->pool.give(slot);
}

// slot: active. The first messages go at once, unless the offload thread is as quick.
void begin(std::unique_ptr<Job> job, Slot* slot) noexcept {
    if (!engine->thread.spins() && advance_job(*job, float_environment()))
        return complete_job(slot, job->error);
    if (engine->jobs.add(job, slot)) return engine->thread.wake();
    run_here(*job);
    complete_job(slot, job->error);
}

int raised(const Job& job, MPI_Comm comm) noexcept {
    if (job.error != MPI_SUCCESS) real.Comm_call_errhandler(comm, job.error);
    return job.error;
}

Slot* take_slot(Call call, MPI_Comm comm) noexcept {
    Slot* slot = engine->pool.take();
    if (!slot) return nullptr;
    slot->comm = comm;
    slot->call = call;
    slot->is_job = true;
    engine->jobs.note_posted();
    return slot;
}

}  // namespace

// ---- jobs as other folders see them -------------------------------------------------------------

bool jobs_are_served() noexcept { return agreement().serves_jobs; }
bool jobs_are_watched() noexcept { return engine_runs() && engine->thread.spins(); }

// The engine's loop and the offload thread look at jobs by themselves, but where callers complete
// the thread may be held up. A poll inside a job comes from advance(), which called the library.
library::JobLook job_look_after_poll() noexcept {
    if (this_thread.is(Inside::job) || this_thread.is(Inside::engine) || !engine_runs())
        return library::JobLook::none;
    if (engine->thread.exists() && !engine->callers_complete()) return library::JobLook::none;
    return engine->facts.library_locks ? library::JobLook::after_unlock : library::JobLook::at_once;
}

void advance_jobs_in_library() noexcept {
    const Within poll(Inside::library | Inside::poll);
    advance_jobs();
}

int post_job(Call call, std::unique_ptr<Job> job, MPI_Comm comm,
             MPI_Request* app_request) noexcept {
    if (Slot* slot = take_slot(call, comm)) {
        slot->state.store(SlotState::active, std::memory_order_relaxed);
        *app_request = engine->pool.handle(slot);
        begin(std::move(job), slot);
        return MPI_SUCCESS;
    }
    if (engine->jobs.add_stand_in(job, app_request)) {
        engine->thread.wake();
        return MPI_SUCCESS;
    }
    *app_request = MPI_REQUEST_NULL;
    return run_job(*job, comm);
}

int run_job(Job& job, MPI_Comm comm) noexcept {
    run_here(job);
    return raised(job, comm);
}

int run_job_unowned(Call call, Job& job, MPI_Comm comm) noexcept {
    {
        const DirectCall scope(call, Reentry::program);
        engine->wait_unowned([&job]() noexcept { return job.advance(); });
    }
    return raised(job, comm);
}

int make_persistent_job(Call call, MPI_Comm comm, std::unique_ptr<JobSource> source,
                        MPI_Request* app_request) noexcept {
    Slot* const slot = source ? take_slot(call, comm) : nullptr;
    if (!slot) return MPI_ERR_NO_MEM;
    slot->persistent = true;
    slot->source = source.release();
    slot->state.store(SlotState::inactive, std::memory_order_release);
    *app_request = engine->pool.handle(slot);
    return MPI_SUCCESS;
}

// ---- their requests -----------------------------------------------------------------------------

void start_job(Slot* slot) noexcept {
    int error = MPI_SUCCESS;
    std::unique_ptr<Job> job;
    {
        const Within library(Inside::library);
        job = slot->source->start(&error);
    }
    slot->state.store(SlotState::active, std::memory_order_relaxed);
    if (job)
        begin(std::move(job), slot);
    else
        complete_job(slot, error);
}

void complete_job(Slot* slot, int error) noexcept {
    set_empty(&slot->status);
    slot->error = error;
    // Acquire and release: pairs with readiness() and with abandon_job().
    if (slot->state.exchange(SlotState::done, std::memory_order_acq_rel) == SlotState::abandoned)
        give_back(slot);
}

void abandon_job(Slot* slot) noexcept {
    SlotState active = SlotState::active;  // pairs with complete_job()
    if (!slot->state.compare_exchange_strong(active, SlotState::abandoned,
                                             std::memory_order_acq_rel))
        give_back(slot);
}

void note_job_error(MPI_Comm comm, int error) noexcept {
    if (first_job_error.error != MPI_SUCCESS) return;
    first_job_error = {error, comm};
}

int after_job_errors(int rc) noexcept {
    if (first_job_error.error == MPI_SUCCESS) [[likely]]
        return rc;
    const JobError raised = std::exchange(first_job_error, JobError{});
    real.Comm_call_errhandler(raised.comm, raised.error);
    return rc;
}

}  // namespace vecmpi::offload
