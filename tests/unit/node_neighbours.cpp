// SPDX-License-Identifier: BSD-3-Clause
// Exchanges between neighbours through staging buffers: who finds which block where. The ranks are
// threads.
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "pipeline/node/neighbour_run.hpp"
#include "pipeline/node/staged_collectives.hpp"
#include "running_engine.hpp"

using namespace vecmpi;
using namespace vecmpi::pipeline::node;

TEST_CASE("neighbours: what came by the library must fit the topology") {
    constexpr int nobody = MPI_PROC_NULL;
    struct Row {
        const char* what;
        std::vector<EdgeSource> edges;
        std::vector<int> sources;
        bool fits;
    };
    const Row row = GENERATE(Row{"no neighbours", {}, {}, true}, Row{"one", {{3, 0, 1}}, {3}, true},
                             Row{"two edges from one rank", {{3, 1, 2}, {3, 0, 2}}, {3, 3}, true},
                             Row{"a border", {{nobody, 0, 0}, {1, 5, 6}}, {nobody, 1}, true},
                             Row{"nothing came", {{nobody, 0, 0}}, {1}, false},
                             Row{"something came over a border", {{1, 0, 1}}, {nobody}, false},
                             Row{"from another rank", {{2, 0, 1}}, {1}, false},
                             Row{"a part behind the last", {{1, 2, 2}}, {1}, false},
                             Row{"a part before the first", {{1, -1, 2}}, {1}, false});
    CAPTURE(row.what);
    CHECK(are_of(row.edges, row.sources) == row.fits);
}

TEST_CASE("neighbours: parts of slots") {
    CHECK(first_bytes_of(1) >= 4096);
    CHECK(first_bytes_of(2) == 2048);
    CHECK(first_bytes_of(most_neighbour_parts) == 0);
    for (int parts = 1; parts <= most_neighbour_parts; ++parts) {
        const auto n = static_cast<size_t>(parts);
        CHECK(sizeof(NeighbourHeader) + n * first_part_bytes(parts) <= small_ring.slot_bytes);
        for (const RingShape& large : {wide_ring_of_few, wide_ring, narrow_ring}) {
            const size_t part = next_part_bytes(large.slot_bytes, parts);
            CHECK((part != 0 && n * part <= large.slot_bytes));
        }
    }
    CHECK(rounds_for(0, 8) == 0);
    CHECK(rounds_for(8, 8) == 1);
    CHECK(rounds_for(9, 8) == 2);
}

namespace {

const Doors no_doors;

// A directed graph with an order of the edges at both ends.
struct Edge {
    int from, to, part, place;
};
struct AnyGraph {
    std::vector<Edge> edges;
    std::vector<int> out, in;  // degrees, by rank
};

AnyGraph random_edges(int ranks, std::mt19937& random) {
    AnyGraph graph;
    graph.out.resize(static_cast<size_t>(ranks));
    graph.in.resize(static_cast<size_t>(ranks));
    for (int i = 0; i < ranks * ranks; ++i)
        for (unsigned edges = random() % 3; edges != 0; --edges)
            graph.edges.push_back({i / ranks, i % ranks, 0, 0});
    for (int r = 0; r < ranks && random() % 2 == 0; ++r) {
        graph.edges.push_back({r, MPI_PROC_NULL, 0, 0});
        graph.edges.push_back({MPI_PROC_NULL, r, 0, 0});
    }
    std::shuffle(graph.edges.begin(), graph.edges.end(), random);
    for (Edge& edge : graph.edges)
        if (edge.from != MPI_PROC_NULL) edge.part = graph.out[static_cast<size_t>(edge.from)]++;
    std::shuffle(graph.edges.begin(), graph.edges.end(), random);
    for (Edge& edge : graph.edges)
        if (edge.to != MPI_PROC_NULL) edge.place = graph.in[static_cast<size_t>(edge.to)]++;
    return graph;
}

Neighbourhood hood_of(const AnyGraph& graph, int rank) {
    const auto r = static_cast<size_t>(rank);
    const auto in = static_cast<size_t>(graph.in[r]), out = static_cast<size_t>(graph.out[r]);
    Neighbourhood hood;
    hood.sources.resize(in);
    hood.of_vectors.resize(in);
    hood.destinations.resize(out);
    hood.given.resize(std::max<size_t>(out, 1));
    hood.taken.resize(in);
    hood.rest_given.resize(out);
    hood.rest_taken.resize(in);
    for (const Edge& edge : graph.edges) {
        if (edge.from == rank) hood.destinations[static_cast<size_t>(edge.part)] = edge.to;
        if (edge.to != rank) continue;
        const auto place = static_cast<size_t>(edge.place);
        hood.sources[place] = edge.from;
        if (edge.from == MPI_PROC_NULL) continue;
        hood.of_vectors[place] = {edge.from, edge.part, graph.out[static_cast<size_t>(edge.from)]};
    }
    return hood;
}

using Bytes = std::vector<unsigned char>;

// What a rank gives and gets in one call, and what it has got.
struct Exchanged {
    std::vector<Bytes> given, expected, taken;
    bool fits = true;
};

size_t random_length(std::mt19937& random) {
    constexpr size_t most[] = {1, 100, 3000, 20000, 60000, 300000};
    return random() % 4 == 0 ? 0 : random() % most[random() % 6];
}

// short_by: bytes for which some blocks have no room.
std::vector<Exchanged> random_exchange(const AnyGraph& graph, bool has_parts, size_t short_by,
                                       std::mt19937& random) {
    std::vector<Exchanged> ranks(graph.out.size());
    for (size_t r = 0; r < ranks.size(); ++r) {
        const auto blocks = has_parts ? static_cast<size_t>(graph.out[r]) : 1;
        ranks[r].expected.resize(static_cast<size_t>(graph.in[r]));
        for (size_t b = 0; b < blocks; ++b) {
            Bytes& bytes = ranks[r].given.emplace_back(random_length(random));
            for (unsigned char& one : bytes) one = static_cast<unsigned char>(random());
        }
    }
    for (const Edge& edge : graph.edges) {
        if (edge.from == MPI_PROC_NULL || edge.to == MPI_PROC_NULL) continue;
        Exchanged& to = ranks[static_cast<size_t>(edge.to)];
        const auto part = has_parts ? static_cast<size_t>(edge.part) : 0;
        const Bytes& whole = ranks[static_cast<size_t>(edge.from)].given[part];
        const bool fits = short_by == 0 || whole.size() < short_by || random() % 3 != 0;
        to.fits = to.fits && fits;
        to.expected[static_cast<size_t>(edge.place)] =
            Bytes(whole.begin(), whole.end() - static_cast<ptrdiff_t>(fits ? 0 : short_by));
    }
    for (Exchanged& rank : ranks)
        for (const Bytes& bytes : rank.expected) rank.taken.emplace_back(bytes.size());
    return ranks;
}

int find_no_message(int, int, MPI_Comm, int* flag, MPI_Status*) {
    *flag = 0;
    return MPI_SUCCESS;
}

void run_rank(StagedCollectives& staged, Neighbourhood& hood, Exchanged& call, bool has_parts) {
    for (size_t b = 0; b < call.given.size(); ++b)
        hood.given[b] = {call.given[b].data(), call.given[b].size()};
    for (size_t b = 0; b < call.taken.size(); ++b)
        hood.taken[b] = {call.taken[b].data(), call.taken[b].size()};
    if (NeighbourRun(staged, hood, hood.of_vectors, has_parts).run() != call.fits)
        call.taken.clear();  // which is not what is expected
}

}  // namespace

TEST_CASE("neighbours: all blocks of any graph arrive, through slots and by single copy") {
    fake::reset();
    real.Iprobe = find_no_message;  // by who waits
    const RunningEngine engine(Mode::callers);
    const int p = GENERATE(2, 3, 5);
    const bool reads = GENERATE(false, true);
    const unsigned seed = std::random_device()();
    CAPTURE(p, reads, seed);
    std::mt19937 random(seed);
    const RingShape large = large_ring(GENERATE(RingWidth::wide, RingWidth::narrow), p);
    std::vector<std::vector<StagingBuffer>> buffers;
    std::vector<StagingBuffer*> all;
    for (int r = 0; r < p; ++r) {
        // The first one, and memory for its large ring.
        buffers.emplace_back(2 + large.bytes() / sizeof(StagingBuffer));
        all.push_back(buffers.back().data());
    }
    const AnyGraph graph = random_edges(p, random);
    struct OneCall {
        std::vector<Exchanged> ranks;
        bool has_parts;
    };
    std::vector<OneCall> calls;
    for (unsigned i = 0; i < 60; ++i)
        calls.push_back(
            {random_exchange(graph, i % 3 != 0, i % 7 == 6 ? 5000 : 0, random), i % 3 != 0});
    std::vector<std::thread> threads;
    for (int r = 0; r < p; ++r)
        threads.emplace_back([&, r] {
            StagedCollectives staged(r, all, large, no_doors);
            if (reads)
                staged.allow_single_copy(
                    std::vector<PeerProcess>(static_cast<size_t>(p), this_process()));
            Neighbourhood hood = hood_of(graph, r);
            for (OneCall& call : calls)
                run_rank(staged, hood, call.ranks[static_cast<size_t>(r)], call.has_parts);
        });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < calls.size(); ++i)
        for (size_t r = 0; r < calls[i].ranks.size(); ++r) {
            CAPTURE(i, r);
            CHECK(calls[i].ranks[r].taken == calls[i].ranks[r].expected);
        }
}
