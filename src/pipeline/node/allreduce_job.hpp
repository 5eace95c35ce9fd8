// SPDX-License-Identifier: BSD-3-Clause
// MPI_Iallreduce through staging buffers, as a job of the engine's.
#pragma once

#include <memory>

#include "node_comm.hpp"
#include "reduction_run.hpp"

namespace vecmpi::pipeline::node {

// One rank's part. Takes the next sequence number of the queue.
class AllreduceJob : public offload::Job {
  public:
    AllreduceJob(std::shared_ptr<AllreduceQueue> queue, const Operands& what) noexcept;
    bool advance() noexcept override;

  private:
    const std::shared_ptr<AllreduceQueue> queue_;
    const Operands what_;
    const uint64_t sequence_;
    std::optional<AllreduceRun> run_;  // from when it is the next one
};

}  // namespace vecmpi::pipeline::node
