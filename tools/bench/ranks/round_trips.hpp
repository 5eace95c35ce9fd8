// SPDX-License-Identifier: BSD-3-Clause
// The ping-pong of `latency` and `network`. Only ranks 0 and 1 may call it.
#pragma once

#include <cstddef>
#include <vector>

namespace vecmpi::bench {

// `count` round trips between ranks 0 and 1; returns the time of one on the caller's clock.
double round_trips(std::vector<char>& buffer, std::size_t bytes, int rank, long count);

}  // namespace vecmpi::bench
