// SPDX-License-Identifier: BSD-3-Clause
// The jobs that are under way. Must not know what a job does.
//
// A record is never freed, so a thread may walk the list while others change it. The fields of a
// record are for the thread that holds `busy`. A thread that is in a job keeps others out of that
// job alone: Job::advance() may be held up in an operator of the program, which the library runs
// when it makes progress.
#pragma once

#include "base/api/needs.hpp"
#include "slots.hpp"

namespace vecmpi::offload {

struct JobRecord {
    std::atomic<uint32_t> busy{0};          // exchange with acquire, store with release
    std::atomic<JobRecord*> next{nullptr};  // stored with release after what it leads to
    JobRecord* before = nullptr;            // under JobList::changing_
    std::unique_ptr<Job> job;               // null: not in use
    Slot* slot = nullptr;                   // null: a stand-in completes, of tag `number`
    int number = 0;                         // of this record, for ever
    FloatEnvironment floats{};              // of the poster
};

class JobList {
  public:
    JobList() = default;
    JobList(const JobList&) = delete;
    JobList& operator=(const JobList&) = delete;

    // One look at each job that no other thread is in. True if one is done.
    bool advance() noexcept;
    // slot: active. False, and nothing done, where there is no memory.
    bool add(std::unique_ptr<Job>& job, Slot* slot) noexcept;
    // The same with a request of the library in place of a slot: a receive from this process itself
    // stands in. Its tag is the record's number.
    bool add_stand_in(std::unique_ptr<Job>& job, MPI_Request* app_request) noexcept;

    // Requests of jobs may be virtual from now on.
    void note_posted() noexcept {
        posted_.store(true, std::memory_order_relaxed);
        set_need(Need::virtual_requests, true);
    }
    bool were_posted() const noexcept { return posted_.load(std::memory_order_relaxed); }
    // Before MPI_Finalize: lets jobs that are left go on for at most a second, then forgets them.
    // Requests stay: the functions that MPI_Finalize calls first may complete, start or free them.
    void end() noexcept;
    void forget_requests() noexcept;  // after MPI_Finalize

  private:
    JobRecord* take_record() noexcept;
    void keep_unused(JobRecord* record) noexcept;
    void start(JobRecord* record, std::unique_ptr<Job>& job, Slot* slot) noexcept;
    bool advance(JobRecord* record, bool* waits_for_memory) noexcept;
    void append(JobRecord* record) noexcept;
    void remove(JobRecord* record) noexcept;
    MPI_Comm stand_in_comm() noexcept;

    std::atomic<bool> posted_{false};
    std::atomic<uint32_t> changing_{
        0};  // a lock, held for a few stores; nothing is called meanwhile
    std::atomic<JobRecord*> first_{nullptr};
    JobRecord* last_ = nullptr;
    JobRecord* unused_ = nullptr;  // linked by `before`
    JobRecord* left_ = nullptr;    // by end(): as they were
    int records_ = 0;
    MPI_Comm stand_in_comm_ = MPI_COMM_NULL;
};

// One look, inside the library, in the float environment of the poster. True when the job is done.
bool advance_job(Job& job, const FloatEnvironment& floats) noexcept;

}  // namespace vecmpi::offload
