// SPDX-License-Identifier: BSD-3-Clause
// The engine over the fake library, on two nodes as far as the ranks' agreement knows.
#pragma once

#include <cstdint>

#include "offload/agreement.hpp"
#include "running_engine.hpp"

// In MPI_Init the ranks compare 64-bit words by a maximum. The other rank of this fake world has
// another node's name: the words that hold it and its complement come out larger than ours, the
// rest is equal.
inline void as_on_another_node(const void* sendbuf, void* recvbuf, int count) {
    constexpr int node_name = 2;
    auto* const words = static_cast<uint64_t*>(recvbuf);
    for (int i = 0; i < count; ++i) words[i] = static_cast<const uint64_t*>(sendbuf)[i];
    words[node_name] = words[node_name + 1] = UINT64_MAX;
}

struct TwoNodes {
    explicit TwoNodes(Mode mode)
        : running(
              (fake::reduce = as_on_another_node, fake::facts_of(MPI_COMM_WORLD).size = 3, mode)) {
        fake::reduce = [](const void*, void*, int) {};
        REQUIRE_FALSE(vecmpi::offload::agreement().one_node);
        first = fake::reductions().size();
    }
    FreshLibrary library;
    RunningEngine running;
    size_t first;  // of the reductions after those of MPI_Init
};
