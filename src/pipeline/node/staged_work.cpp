// SPDX-License-Identifier: BSD-3-Clause
// One look at a nonblocking collective.
#include "staged_work.hpp"

namespace vecmpi::pipeline::node {

StagedJob::StagedJob(std::shared_ptr<NodeQueue> queue, StagedWork& work, Transport by) noexcept
    : queue_(std::move(queue)), work_(work), by_(by), sequence_(queue_->begun++) {
    waits_for_memory = true;
}

bool StagedJob::advance() noexcept {
    Fiber& fiber = queue_->fiber;
    if (!is_running_) {
        // Pairs with the release below: fiber and staging buffers are as the last job left them.
        if (queue_->ended.load(std::memory_order_acquire) != sequence_) return false;
        is_running_ = true;
        fiber.begin(
            [](void* self) noexcept {
                auto& job = *static_cast<StagedJob*>(self);
                job.error = job.work_.run(*job.queue_->node, job.by_);
            },
            this);
    }
    if (!fiber.go_on()) return false;
    offload::note_return_from_memory();
    queue_->ended.store(sequence_ + 1, std::memory_order_release);
    return true;
}

}  // namespace vecmpi::pipeline::node
