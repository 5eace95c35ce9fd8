// SPDX-License-Identifier: BSD-3-Clause
// One look at a nonblocking collective.
#include "jobs.hpp"

#include <utility>

namespace vecmpi {

AllreduceJob::AllreduceJob(std::shared_ptr<JobSite> site, const Reduction& what) noexcept
    : site_(std::move(site)), what_(what), turn_(site_->posted++) {}

bool AllreduceJob::look() noexcept {
    if (!run_) {
        // Pairs with the release below: the bays are as the thread left them that ended the last.
        if (site_->ended.load(std::memory_order_acquire) != turn_) return false;
        run_.emplace(site_->bays->begin_allreduce(what_));
    }
    const auto advance = [](auto& run) noexcept {
        return run.template advance<Waits::elsewhere>();
    };
    return std::visit(advance, *run_);
}

// The rank that is waited for may itself wait for a message of ours.
bool AllreduceJob::advance() noexcept {
    if (!look()) {
        if (++looks_in_vain_ >= looks_by_itself) make_progress_in_job();
        return false;
    }
    site_->ended.store(turn_ + 1, std::memory_order_release);
    return true;
}

}  // namespace vecmpi
