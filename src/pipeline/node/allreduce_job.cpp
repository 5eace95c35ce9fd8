// SPDX-License-Identifier: BSD-3-Clause
// One look at a nonblocking collective.
#include "allreduce_job.hpp"

#include <utility>

namespace vecmpi::pipeline::node {

AllreduceJob::AllreduceJob(std::shared_ptr<JobSite> site, const Operands& what) noexcept
    : site_(std::move(site)), what_(what), turn_(site_->posted++) {
    waits_for_memory = true;
}

bool AllreduceJob::advance() noexcept {
    if (!run_) {
        // Pairs with the release below: the bays are as the thread left them that ended the last.
        if (site_->ended.load(std::memory_order_acquire) != turn_) return false;
        run_.emplace(site_->bays->begin_allreduce(what_));
    }
    const auto look = [](auto& run) noexcept { return run.template advance<Waits::elsewhere>(); };
    if (!std::visit(look, *run_)) return false;
    site_->ended.store(turn_ + 1, std::memory_order_release);
    return true;
}

}  // namespace vecmpi::pipeline::node
