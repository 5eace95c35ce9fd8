// SPDX-License-Identifier: BSD-3-Clause
// The plan of one round of random messages, equal on all ranks. Pure: must not call MPI.
#pragma once

#include <vector>

#include "battery.hpp"

namespace battery {

// exact: every message has a tag of its own. stream: received by source with MPI_ANY_TAG, in order.
// wild: received with MPI_ANY_SOURCE. Each channel is a communicator.
enum class Channel { exact, stream, wild };
enum class SendMode { isend, issend, ibsend, send, ssend, bsend, irsend, rsend };

struct Message {
    uint64_t id = 0;
    int from = 0;  // either may be MPI_PROC_NULL
    int to = 0;
    int tag = 0;  // even; tag + 1 is for the "receive is posted" message of ready sends
    int kind = 0;
    int elements = 0;
    Channel channel = Channel::exact;
    SendMode mode = SendMode::isend;
    bool blocking_receive = false;
};

constexpr bool is_ready(SendMode mode) { return mode >= SendMode::irsend; }
// Posted before anything blocks.
constexpr bool is_early(SendMode mode) { return mode <= SendMode::ibsend; }

constexpr int max_wild_elements = 20000;

// Free of deadlock when every rank first posts its nonblocking receives and early sends in this
// order, and then makes its blocking calls in any order: a blocking receive has an early send, a
// blocking send a posted receive.
inline Message random_message(Random& random, int ranks, int index) {
    Message message;
    message.id = random.next();
    message.from = random.below(ranks);
    message.to = random.below(ranks);
    message.tag = 2 * index;
    message.kind = random.below(3);
    const int size = random.below(100);
    message.elements = size < 10   ? 0
                       : size < 60 ? random.between(1, 64)
                       : size < 85 ? random.between(65, 4096)
                                   : random.between(4097, max_wild_elements);
    message.channel = static_cast<Channel>(random.below(3));
    message.blocking_receive = random.chance(30) && message.channel != Channel::stream;
    const bool early = message.blocking_receive || message.channel != Channel::exact;
    message.mode = static_cast<SendMode>(random.below(early ? 3 : 8));
    if (message.channel != Channel::exact) return message;
    if (size >= 97)
        message.elements = random.between(100000, 4 << 20) / (message.kind == 1 ? 8 : 4);
    if (random.chance(4))
        message.to = MPI_PROC_NULL;
    else if (random.chance(4))
        message.from = MPI_PROC_NULL;
    return message;
}

inline std::vector<Message> make_plan(Random& random, int ranks, int messages) {
    std::vector<Message> plan;
    for (int i = 0; i < messages; ++i) plan.push_back(random_message(random, ranks, i));
    return plan;
}

}  // namespace battery
