// SPDX-License-Identifier: BSD-3-Clause
// The queue of commands: slot indices from program threads to the owner of the engine. It has as
// many places as there are slots, so it is never full. Popped with the right to issue (IssueScope).
#pragma once

#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>

#include "slots.hpp"

namespace vecmpi::offload {

class CommandQueue {
  public:
    // Below MPI_THREAD_MULTIPLE one program thread posts at a time, and the program orders their
    // calls. Then a ring serves: it moves one cache line between the cores, the many-producer queue
    // three. Called while nothing is queued.
    void expect_many_producers(bool many) noexcept { many_producers_ = many; }

    bool has_many_producers() const noexcept { return many_producers_; }

    void push(uint16_t index) noexcept {
        if (many_producers_)
            many_.bounded_push(index);
        else
            one_.push(index);
    }
    bool pop(uint16_t& index) noexcept {
        return many_producers_ ? many_.pop(index) : one_.pop(index);
    }
    bool empty() const noexcept {
        return many_producers_ ? many_.empty() : one_.read_available() == 0;
    }

  private:
    bool many_producers_ = true;
    boost::lockfree::queue<uint16_t, boost::lockfree::fixed_sized<true>,
                           boost::lockfree::capacity<slot_count>>
        many_;
    boost::lockfree::spsc_queue<uint16_t, boost::lockfree::capacity<slot_count>> one_;
};

}  // namespace vecmpi::offload
