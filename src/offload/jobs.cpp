// SPDX-License-Identifier: BSD-3-Clause
// Jobs: from the post to the completed request. What a job does is its own affair (src/pipeline).
#include "jobs.hpp"

#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "engine.hpp"

namespace vecmpi::offload {

namespace {

// The first error of a job that this call of the program completed: raised as the call ends.
struct JobError {
    int error = MPI_SUCCESS;
    MPI_Comm comm = MPI_COMM_NULL;
};
thread_local constinit JobError first_job_error __attribute__((tls_model("initial-exec"))) = {};

// A thread that enters a job: inside the library, and computing as the poster would.
class JobScope {
  public:
    explicit JobScope(const FloatEnvironment& floats) noexcept : own_floats_(float_environment()) {
        if (own_floats_ != floats) set_float_environment(floats);
    }
    ~JobScope() { set_float_environment(own_floats_); }
    JobScope(const JobScope&) = delete;
    JobScope& operator=(const JobScope&) = delete;

  private:
    const Within within_{Inside::library | Inside::job};
    const FloatEnvironment own_floats_;
};

bool look_at(Job& job, const FloatEnvironment& floats) noexcept {
    const JobScope scope(floats);
    return job.advance();
}

void run_here(Job& job) noexcept {
    const FloatEnvironment floats = float_environment();
    engine->wait_until(
        [&](bool may_call) noexcept {
            if (!may_call) return false;
            if (look_at(job, floats)) return true;
            if (job.waits_for_memory) poll_library();
            return false;
        },
        job.waits_for_memory ? WaitsFor::memory : WaitsFor::messages);
}

void give_back(Slot* slot) noexcept {
    if (slot->persistent) slot->maker->drop(slot->arguments);
    engine->pool.give(slot);
}

void complete_slot(Slot* slot, int error) noexcept {
    MPI_Request none = MPI_REQUEST_NULL;
    int flag;
    real.Test(&none, &flag, &slot->status);  // the library's own empty status
    slot->error = error;
    // Acquire and release: pairs with readiness() and with abandon_job().
    if (slot->state.exchange(SlotState::done, std::memory_order_acq_rel) == SlotState::abandoned)
        give_back(slot);
}

// The receive that stands in for a request gets its message: longer than its buffer where the job
// failed, since a receive knows no other error.
void complete_stand_in(MPI_Comm comm, int tag, int error) noexcept {
    static const char byte = 0;
    MPI_Request sent = MPI_REQUEST_NULL;
    real.Isend(&byte, error == MPI_SUCCESS ? 0 : 1, MPI_BYTE, 0, tag, comm, &sent);
    if (sent != MPI_REQUEST_NULL) real.Request_free(&sent);
}

// A slot that is active. The first messages go at once, unless the offload thread is as quick.
void begin(std::unique_ptr<Job> job, Slot* slot) noexcept {
    if (!engine->thread.spins() && look_at(*job, float_environment()))
        return complete_slot(slot, job->error);
    if (engine->jobs.add(job, slot)) return engine->thread.wake();
    run_here(*job);
    complete_slot(slot, job->error);
}

int raised(const Job& job, MPI_Comm comm) noexcept {
    if (job.error != MPI_SUCCESS) real.Comm_call_errhandler(comm, job.error);
    return job.error;
}

Slot* take_slot(Call call, MPI_Comm comm) noexcept {
    Slot* slot = engine->pool.take();
    if (!slot) {
        count(Counter::decline_no_slot);
        return nullptr;
    }
    slot->error = MPI_SUCCESS;
    slot->mpi_request = MPI_REQUEST_NULL;
    slot->comm = comm;
    slot->call = call;
    slot->forgotten = false;
    slot->is_job = true;
    slot->takes_floats = false;
    engine->jobs.note_posted();
    return slot;
}

}  // namespace

// ---- the list -----------------------------------------------------------------------------------

class JobList::Changing {
  public:
    explicit Changing(JobList& list) noexcept : list_(list) {
        while (list_.changing_.exchange(1, std::memory_order_acquire) != 0) Ladder::give_way();
    }
    ~Changing() { list_.changing_.store(0, std::memory_order_release); }
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;

  private:
    JobList& list_;
};

JobRecord* JobList::take_record() noexcept {
    {
        const Changing scope(*this);
        if (JobRecord* record = unused_) {
            unused_ = record->before;
            return record;
        }
    }
    auto* record = new (std::nothrow) JobRecord;
    if (!record) return nullptr;
    const Changing scope(*this);
    record->number = records_++;
    return record;
}

// A thread that walked here before may hold the record for a moment, to find it empty.
void JobList::start(JobRecord* record, std::unique_ptr<Job>& job, Slot* slot) noexcept {
    while (record->busy.exchange(1, std::memory_order_acquire) != 0) Ladder::give_way();
    if (job->waits_for_memory) library::jobs_on_memory.fetch_add(1, std::memory_order_relaxed);
    record->job = std::move(job);
    record->slot = slot;
    record->floats = float_environment();
    library::jobs_under_way.fetch_add(1, std::memory_order_relaxed);
    append(record);
    // Not before: who walked here could take the job to its end, and the record out of a list that
    // it is not in.
    record->busy.store(0, std::memory_order_release);
}

bool JobList::add(std::unique_ptr<Job>& job, Slot* slot) noexcept {
    JobRecord* record = take_record();
    if (record) start(record, job, slot);
    return record != nullptr;
}

bool JobList::add_stand_in(std::unique_ptr<Job>& job, MPI_Request* app_request) noexcept {
    JobRecord* record = take_record();
    if (!record) return false;
    const MPI_Comm comm = stand_in_comm();
    const bool made =
        comm != MPI_COMM_NULL && record->number <= engine->facts.tag_upper_bound &&
        real.Irecv(nullptr, 0, MPI_BYTE, 0, record->number, comm, app_request) == MPI_SUCCESS;
    if (made) {
        start(record, job, nullptr);
        return true;
    }
    const Changing scope(*this);
    record->before = unused_;
    unused_ = record;
    return false;
}

void JobList::append(JobRecord* record) noexcept {
    const Changing scope(*this);
    record->next.store(nullptr, std::memory_order_relaxed);
    record->before = last_;
    (last_ ? last_->next : first_).store(record, std::memory_order_release);
    last_ = record;
}

// Who stands at this record goes on by its `next`, which stays until it is used again.
void JobList::remove(JobRecord* record) noexcept {
    const Changing scope(*this);
    JobRecord* after = record->next.load(std::memory_order_relaxed);
    (record->before ? record->before->next : first_).store(after, std::memory_order_release);
    (after ? after->before : last_) = record->before;
    record->before = unused_;
    unused_ = record;
}

bool JobList::advance() noexcept {
    bool any_done = false, waits_for_memory = false;
    for (JobRecord* record = first_.load(std::memory_order_acquire); record;
         record = record->next.load(std::memory_order_acquire))
        any_done |= advance(record, &waits_for_memory);
    // With no job held: the poll may call an operator of the program.
    if (waits_for_memory && !any_done && !this_thread.is(Inside::poll)) poll_library();
    return any_done;
}

bool JobList::advance(JobRecord* record, bool* waits_for_memory) noexcept {
    if (record->busy.load(std::memory_order_relaxed) != 0 ||
        record->busy.exchange(1, std::memory_order_acquire) != 0)
        return false;
    const bool done = record->job && look_at(*record->job, record->floats);
    Slot* slot = record->slot;
    const int number = record->number;
    int error = MPI_SUCCESS;
    if (record->job) *waits_for_memory |= record->job->waits_for_memory;
    if (done) {
        error = record->job->error;
        if (record->job->waits_for_memory)
            library::jobs_on_memory.fetch_sub(1, std::memory_order_relaxed);
        record->job.reset();
        remove(record);
    }
    record->busy.store(0, std::memory_order_release);
    if (!done) return false;
    if (slot)
        complete_slot(slot, error);
    else
        complete_stand_in(stand_in_comm_, number, error);
    library::jobs_under_way.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

// Of this process alone, without the attributes of MPI_COMM_SELF, whose copy functions are the
// program's.
MPI_Comm JobList::stand_in_comm() noexcept {
    static std::atomic<uint32_t> making{0};
    const Within library(Inside::library);
    while (making.exchange(1, std::memory_order_acquire) != 0) Ladder::give_way();
    if (stand_in_comm_ == MPI_COMM_NULL &&
        real.Comm_split(MPI_COMM_SELF, 0, 0, &stand_in_comm_) != MPI_SUCCESS)
        stand_in_comm_ = MPI_COMM_NULL;
    making.store(0, std::memory_order_release);
    return stand_in_comm_;
}

// A program that is right has completed all requests. What a second does not end is left as it is:
// the library may still write to the buffers of its operations.
void JobList::end() noexcept {
    using Clock = std::chrono::steady_clock;
    const Within library(Inside::library);
    Ladder ladder(engine->facts.wait);
    const auto limit = Clock::now() + std::chrono::seconds(1);
    while (library::jobs_under_way.load(std::memory_order_relaxed) != 0 && Clock::now() < limit)
        if (!advance()) ladder.rest();
    const bool left = library::jobs_under_way.exchange(0, std::memory_order_relaxed) != 0;
    library::jobs_on_memory.store(0, std::memory_order_relaxed);
    if (last_) last_->next.store(left_, std::memory_order_relaxed);  // they stay reachable
    if (JobRecord* first = first_.exchange(nullptr, std::memory_order_relaxed)) left_ = first;
    last_ = nullptr;
    if (stand_in_comm_ != MPI_COMM_NULL && !left) real.Comm_free(&stand_in_comm_);
    stand_in_comm_ = MPI_COMM_NULL;
}

void JobList::forget_requests() noexcept {
    posted_.store(false, std::memory_order_relaxed);
    set_need(Need::virtual_requests, false);
}

// ---- the door -----------------------------------------------------------------------------------

bool jobs_are_served() noexcept { return agreement().serves_jobs; }
bool jobs_are_watched() noexcept { return engine_runs() && engine->thread.spins(); }

// A poll inside a look at a job: advance() called the library. The engine's loop and its thread
// look by themselves; the thread may be held up where callers ask.
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
        slot->persistent = false;
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
    return run_job(call, *job, comm);
}

int run_job(Call, Job& job, MPI_Comm comm) noexcept {
    run_here(job);
    return raised(job, comm);
}

int run_job_beside(Call call, Job& job, MPI_Comm comm) noexcept {
    {
        const DirectCall scope(call, Reentry::program);
        engine->wait_beside_owner([&job]() noexcept { return job.advance(); });
    }
    return raised(job, comm);
}

int make_persistent_job(Call call, MPI_Comm comm, const JobMaker& maker, const void* arguments,
                        size_t argument_bytes, MPI_Request* app_request) noexcept {
    Slot* slot = take_slot(call, comm);
    if (!slot) return MPI_ERR_NO_MEM;
    slot->persistent = true;
    slot->maker = &maker;
    std::memcpy(slot->arguments, arguments, argument_bytes);
    slot->state.store(SlotState::inactive, std::memory_order_release);
    *app_request = engine->pool.handle(slot);
    return MPI_SUCCESS;
}

// ---- requests of jobs ---------------------------------------------------------------------------

void start_job(Slot* slot) noexcept {
    int error = MPI_SUCCESS;
    std::unique_ptr<Job> job;
    {
        const Within library(Inside::library);
        job = slot->maker->make(slot->arguments, &error);
    }
    slot->state.store(SlotState::active, std::memory_order_relaxed);
    if (job)
        begin(std::move(job), slot);
    else
        complete_slot(slot, error);
}

void abandon_job(Slot* slot) noexcept {
    SlotState active = SlotState::active;  // pairs with complete_slot()
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
