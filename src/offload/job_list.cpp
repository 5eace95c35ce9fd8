// SPDX-License-Identifier: BSD-3-Clause
// The list of jobs: who is in it, and one look at each.
#include "job_list.hpp"

#include <new>
#include <utility>

#include "engine.hpp"
#include "job_requests.hpp"

namespace vecmpi::offload {

namespace {

// Holds a lock that others hold for a few instructions.
class Locked {
  public:
    explicit Locked(std::atomic<uint32_t>& word) noexcept : word_(word) {
        while (word_.exchange(1, std::memory_order_acquire) != 0) Ladder::give_way();
    }
    ~Locked() { word_.store(0, std::memory_order_release); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    std::atomic<uint32_t>& word_;
};

// This thread is in a job: inside the library, with the float environment of the poster.
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

// Sends the message that the stand-in receives. It is longer than the receive's buffer where the
// job failed: a receive knows no other error.
void complete_stand_in(MPI_Comm comm, int tag, int error) noexcept {
    static const char byte = 0;
    MPI_Request sent = MPI_REQUEST_NULL;
    real.Isend(&byte, error == MPI_SUCCESS ? 0 : 1, MPI_BYTE, 0, tag, comm, &sent);
    if (sent != MPI_REQUEST_NULL) real.Request_free(&sent);
}

}  // namespace

bool advance_job(Job& job, const FloatEnvironment& floats) noexcept {
    const JobScope scope(floats);
    return job.advance();
}

JobRecord* JobList::take_record() noexcept {
    {
        const Locked scope(changing_);
        if (JobRecord* record = unused_) {
            unused_ = record->before;
            return record;
        }
    }
    auto* record = new (std::nothrow) JobRecord;
    if (!record) return nullptr;
    const Locked scope(changing_);
    record->number = records_++;
    return record;
}

// With `changing_`.
void JobList::keep_unused(JobRecord* record) noexcept {
    record->before = unused_;
    unused_ = record;
}

// A thread that is walking the list may hold the record for a moment, and finds it empty.
void JobList::start(JobRecord* record, std::unique_ptr<Job>& job, Slot* slot) noexcept {
    // To the end: a thread that walks here could else finish the job, and remove the record from a
    // list that it is not in yet.
    const Locked scope(record->busy);
    if (job->waits_for_memory) library::jobs_on_memory.fetch_add(1, std::memory_order_relaxed);
    record->job = std::move(job);
    record->slot = slot;
    record->floats = float_environment();
    library::jobs_under_way.fetch_add(1, std::memory_order_relaxed);
    append(record);
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
    const Locked scope(changing_);
    keep_unused(record);
    return false;
}

void JobList::append(JobRecord* record) noexcept {
    const Locked scope(changing_);
    record->next.store(nullptr, std::memory_order_relaxed);
    record->before = last_;
    (last_ ? last_->next : first_).store(record, std::memory_order_release);
    last_ = record;
}

// A thread that is at this record goes on by its `next`, which stays until the record is used
// again.
void JobList::remove(JobRecord* record) noexcept {
    const Locked scope(changing_);
    JobRecord* after = record->next.load(std::memory_order_relaxed);
    (record->before ? record->before->next : first_).store(after, std::memory_order_release);
    (after ? after->before : last_) = record->before;
    keep_unused(record);
}

bool JobList::advance() noexcept {
    bool any_done = false, waits_for_memory = false;
    for (JobRecord* record = first_.load(std::memory_order_acquire); record;
         record = record->next.load(std::memory_order_acquire))
        any_done |= advance(record, &waits_for_memory);
    // While this thread holds no job: the poll may call an operator of the program.
    if (waits_for_memory && !any_done && !this_thread.is(Inside::poll)) poll_library();
    return any_done;
}

bool JobList::advance(JobRecord* record, bool* waits_for_memory) noexcept {
    if (record->busy.load(std::memory_order_relaxed) != 0 ||
        record->busy.exchange(1, std::memory_order_acquire) != 0)
        return false;
    const bool done = record->job && advance_job(*record->job, record->floats);
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
        complete_job(slot, error);
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
    const Locked scope(making);
    if (stand_in_comm_ == MPI_COMM_NULL &&
        real.Comm_split(MPI_COMM_SELF, 0, 0, &stand_in_comm_) != MPI_SUCCESS)
        stand_in_comm_ = MPI_COMM_NULL;
    return stand_in_comm_;
}

// A correct program has completed all requests. A job that a second does not end is left as it is:
// the library may still write to the buffers of its operations.
void JobList::end() noexcept {
    const Within library(Inside::library);
    Ladder ladder(engine->facts.wait);
    const uint64_t limit_us = monotonic_us() + 1000000;
    while (library::jobs_under_way.load(std::memory_order_relaxed) != 0 &&
           monotonic_us() < limit_us)
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

}  // namespace vecmpi::offload
