// SPDX-License-Identifier: BSD-3-Clause
// Work of many operations that the engine carries on until it is done.
#pragma once

#include <mpi.h>

#include <memory>

#include "library/api.hpp"

namespace vecmpi::offload {

class Job {
  public:
    virtual ~Job() = default;
    // One look: issues and completes what can be. True when all is done; then it is not called
    // again, and the engine destroys the job. Called inside the library (is_reentrant() holds), by
    // one thread at a time but not always the same, with the float environment of the poster.
    // Never blocks, and never waits for a lock that may be held while the library is called: it may
    // run deep inside a wait of the library.
    virtual bool advance() noexcept = 0;
    int error = MPI_SUCCESS;  // of the whole, once done
    // advance() never calls the library. After a look that found nothing the engine polls the
    // library: the other rank may itself wait for a message of ours.
    bool waits_for_memory = false;

  protected:
    Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
};

// True where jobs go on whatever call their rank is in, even a wait of the library. Agreed in
// MPI_Init: equal on all ranks of MPI_COMM_WORLD. False before MPI_Init and from MPI_Finalize on.
bool jobs_are_served() noexcept;
// True while a thread of ours looks at jobs without rest. Of this rank only.
bool jobs_are_watched() noexcept;

// Nonblocking: the request completes with the job. It is virtual, or a request of the library where
// no slot is left. Jobs and operations have no order among them. comm: its error handler is called
// with Job::error, in the call that completes the request. Always MPI_SUCCESS. The other ranks have
// begun their jobs, so this one cannot be declined: without memory the call returns when it is
// done.
int post_job(Call call, std::unique_ptr<Job> job, MPI_Comm comm, MPI_Request* app_request) noexcept;

// Blocking, on this thread; other jobs go on meanwhile. Returns job.error, after it was raised with
// comm's handler.
int run_job(Job& job, MPI_Comm comm) noexcept;
// The same for a job that calls an operator of the program. The operator may wait for a thread that
// calls MPI, and that thread must not wait for this one. So this one does not own the engine.
int run_job_unowned(Call call, Job& job, MPI_Comm comm) noexcept;

// What makes the jobs of a persistent request. That owns it, and deletes it when the request is
// gone and its last job done.
class JobSource {
  public:
    virtual ~JobSource() = default;
    // The job of one MPI_Start. Null: there is nothing to do, and the request is complete with
    // *error. Called inside the library by the program's thread.
    virtual std::unique_ptr<Job> start(int* error) noexcept = 0;

  protected:
    JobSource() = default;
    JobSource(const JobSource&) = delete;
    JobSource& operator=(const JobSource&) = delete;
};

// A persistent request, inactive, virtual. MPI_ERR_NO_MEM, and nothing done, where no slot is left
// or there was no memory for the source: it is null. Whether all ranks have one, the caller must
// find out: it may communicate in MPI_X_init (MPI 4.0, 6.13).
int make_persistent_job(Call call, MPI_Comm comm, std::unique_ptr<JobSource> source,
                        MPI_Request* app_request) noexcept;

// What src/offload answers to the library's polls (PollAnswers).
library::JobLook job_look_after_poll() noexcept;
void advance_jobs_in_library() noexcept;

}  // namespace vecmpi::offload
