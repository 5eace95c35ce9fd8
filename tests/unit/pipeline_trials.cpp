// SPDX-License-Identifier: BSD-3-Clause
// Trials over several nodes: turns, what decides, what new communicators know, and checks.
#include <catch2/catch.hpp>
#include "pipeline/trials_over_nodes.hpp"
#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline;

namespace {

uint64_t other_rank_ns = 0;  // what another rank has measured of each call
int met = 0;

// MPI_Allreduce of RowTimes: of the first call, and of the four in the second half of a row.
int slowest_of_two(const void* own, void* most, int count, MPI_Datatype, MPI_Op, MPI_Comm) {
    ++met;
    const auto* const mine = static_cast<const uint64_t*>(own);
    auto* const slowest = static_cast<uint64_t*>(most);
    for (int i = 0; i < count; ++i) slowest[i] = mine[i];
    slowest[0] = std::max(mine[0], other_rank_ns);
    slowest[1] = std::max(mine[1], 4 * other_rank_ns);
    return MPI_SUCCESS;
}

FoundOverNodes nothing() {
    FoundOverNodes found;
    for (auto& row : found) row.fill(base::Trial::open);
    return found;
}

struct CommOverNodes {
    CommOverNodes() {
        real.Allreduce = slowest_of_two;
        other_rank_ns = 0;
        met = 0;
    }
    FreshLibrary library;
    static inline int next_shape = 1000;  // each test finds for itself
    const CommShape shape{++next_shape, 3, 1};
    TrialsOverNodes trials{shape, nothing()};
    uint64_t now_ns = 1000;

    // Of a call that begins as the one before ends.
    void end(uint64_t ns) {
        trials.row_under_way().end_call(now_ns, now_ns + ns);
        now_ns += ns;
    }

    // One call: who served it.
    Server call(const TriedCall& tried, uint64_t ours_ns, uint64_t library_ns) {
        const ServedBy by = trials.begin_call(tried, MPI_COMM_WORLD);
        if (by.turn.end != nullptr) end(by.server == Server::library ? library_ns : ours_ns);
        return by.server;
    }
    int calls_to_winner(const TriedCall& tried, uint64_t ours_ns, uint64_t library_ns) {
        for (int calls = 0; calls < 1000; ++calls) {
            const ServedBy by = trials.begin_call(tried, MPI_COMM_WORLD);
            if (by.turn.end == nullptr) return calls;
            end(by.server == Server::library ? library_ns : ours_ns);
        }
        return -1;
    }
};

const TriedCall bcast{Call::Bcast, Collective::bcast, 65536};

}  // namespace

TEST_CASE("trials over nodes: the faster one wins, and costs few calls", "[pipeline][trials]") {
    CommOverNodes comm;
    CHECK(comm.calls_to_winner(bcast, 100, 120) == 4 * 2 * 8);  // near: all rounds of rows of eight
    CHECK(comm.call(bcast, 100, 120) == Server::ours);
    TriedCall slow = bcast;
    slow.bytes = 1 << 20;
    slow.is_long = true;
    CHECK(comm.calls_to_winner(slow, 300, 100) == 2);  // the first round shows it
    CHECK(comm.call(slow, 300, 100) == Server::library);
    const int met_so_far = met;
    for (int i = 0; i < 100; ++i) comm.call(bcast, 100, 120);
    CHECK(met == met_so_far);
}

TEST_CASE("trials over nodes: the slowest rank's time counts", "[pipeline][trials]") {
    CommOverNodes comm;
    other_rank_ns = 1000;  // of both: what this rank saw does not matter
    CHECK(comm.calls_to_winner(bcast, 500, 100) == 64);
    CHECK(comm.call(bcast, 500, 100) == Server::ours);  // the preferred one of equals
}

TEST_CASE("trials over nodes: a winner is known to others of the shape", "[pipeline][trials]") {
    CommOverNodes comm;
    CHECK(comm.trials.known(Collective::bcast, 65536, Server::segments) == Server::segments);
    comm.calls_to_winner(bcast, 300, 100);
    CHECK(comm.trials.known(Collective::bcast, 65536, Server::ours) == Server::library);
    CHECK(comm.trials.known(Collective::bcast, 131072, Server::ours) == Server::ours);
    TrialsOverNodes later(comm.shape, found_over_nodes(comm.shape));
    CHECK(later.known(Collective::bcast, 100000, Server::ours) == Server::library);
    CHECK(found_over_nodes({7, 7, 7}) == nothing());
}

TEST_CASE("trials over nodes: one candidate is not tried", "[pipeline][trials]") {
    CommOverNodes comm;
    TriedCall alone = bcast;
    alone.candidates = bit_of(Server::ours);
    CHECK(comm.calls_to_winner(alone, 1, 1) == 0);
    CHECK(met == 0);
}

TEST_CASE("trials over nodes: winner and rival meet again", "[pipeline][trials]") {
    CommOverNodes comm;
    comm.calls_to_winner(bcast, 100, 150);
    int by_library = 0;
    for (int i = 0; i < 1200; ++i) by_library += comm.call(bcast, 100, 50) == Server::library;
    CHECK(by_library > 50);  // it has become the faster one, and won
}

TEST_CASE("trials over nodes: calls that were left end a trial", "[pipeline][trials]") {
    CommOverNodes comm;
    int calls = 0;
    while (calls < 1000 && comm.trials.begin_call(bcast, MPI_COMM_WORLD).turn.end != nullptr)
        ++calls;
    CHECK(calls == 64 * 8);
    CHECK(comm.trials.begin_call(bcast, MPI_COMM_WORLD).server == Server::ours);
}
