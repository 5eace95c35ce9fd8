// SPDX-License-Identifier: BSD-3-Clause
// One look at a nonblocking collective.
#include "allreduce_job.hpp"

#include <utility>

namespace vecmpi::pipeline::node {

AllreduceJob::AllreduceJob(std::shared_ptr<AllreduceQueue> queue, const Operands& what) noexcept
    : queue_(std::move(queue)), what_(what), sequence_(queue_->posted++) {
    waits_for_memory = true;
}

bool AllreduceJob::advance() noexcept {
    if (!run_) {
        // Pairs with the release below: the staging buffers are as the last job left them.
        if (queue_->ended.load(std::memory_order_acquire) != sequence_) return false;
        run_.emplace(queue_->collectives->begin_allreduce(what_));
    }
    const auto look = [](auto& run) noexcept { return run.template advance<Waits::elsewhere>(); };
    if (!std::visit(look, *run_)) return false;
    queue_->ended.store(sequence_ + 1, std::memory_order_release);
    return true;
}

}  // namespace vecmpi::pipeline::node
