// SPDX-License-Identifier: BSD-3-Clause
// One collective on one rank, from its arguments to its result, by staging buffers: at once by a
// caller that waits in here, or look by look as a job of the engine's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "fiber.hpp"
#include "node_comm.hpp"
#include "offload/api.hpp"

namespace vecmpi::pipeline::node {

class StagedWork {
  public:
    virtual ~StagedWork() = default;
    // node: has staging buffers. Returns an MPI error code. In a job it leaves off where it waits
    // (Fiber).
    virtual int run(NodeComm& node, Transport by) noexcept = 0;
    // For runs after the call, in which the program's arrays may be gone. Throws std::bad_alloc.
    virtual void keep_arrays(int /*ranks*/) {}
    // For one run behind a nonblocking call: its arrays of numbers stay until it has completed (MPI
    // 4.0, 6.12), but the Fortran bindings pass copies of its array of datatypes. Throws
    // std::bad_alloc.
    virtual void keep_types() {}
};

// Nonblocking calls of a communicator, or the starts of one persistent request. They run one after
// the other, in the order in which all ranks begin them, through memory of their own: blocking
// calls pass them. Lives until the last one has ended.
struct NodeQueue {
    std::unique_ptr<NodeComm> node;
    Fiber fiber;
    uint64_t begun = 0;              // by the program's threads
    std::atomic<uint64_t> ended{0};  // on this rank; released by the thread that ended one
};

// Collective over comm, blocking. Null on all ranks where one cannot.
std::shared_ptr<NodeQueue> make_node_queue(Call call, MPI_Comm comm, int ranks) noexcept;

// Takes the next sequence number of the queue.
class StagedJob : public offload::Job {
  public:
    // work: lives as long as the job.
    StagedJob(std::shared_ptr<NodeQueue> queue, StagedWork& work, Transport by) noexcept;
    bool advance() noexcept override;

  private:
    const std::shared_ptr<NodeQueue> queue_;
    StagedWork& work_;
    const Transport by_;
    const uint64_t sequence_;
    bool is_running_ = false;  // from when it is the next one
};

template <class Work>
class OwningJob : public StagedJob {
  public:
    OwningJob(std::shared_ptr<NodeQueue> queue, Work&& work, Transport by) noexcept
        : StagedJob(std::move(queue), own_, by), own_(std::move(work)) {}

  private:
    Work own_;
};

}  // namespace vecmpi::pipeline::node
