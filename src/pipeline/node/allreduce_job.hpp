// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking collectives through bays, as jobs of the engine's.
#pragma once

#include <memory>

#include "node_comm.hpp"
#include "reduction_run.hpp"

namespace vecmpi::pipeline::node {

// One rank's part of an MPI_Iallreduce. Takes the site's next turn.
class AllreduceJob : public offload::Job {
  public:
    AllreduceJob(std::shared_ptr<JobSite> site, const Operands& what) noexcept;
    bool advance() noexcept override;

  private:
    const std::shared_ptr<JobSite> site_;
    const Operands what_;
    const uint64_t turn_;
    std::optional<AllreduceRun> run_;  // from its turn on
};

}  // namespace vecmpi::pipeline::node
