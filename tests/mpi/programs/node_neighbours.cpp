// SPDX-License-Identifier: BSD-3-Clause
// Streams of blocking neighbourhood collectives, where ranks of a node may serve them through
// memory. Topologies of all kinds: with borders, several edges between the same two ranks, edges
// from a rank to itself, dimensions of one and two places, ranks without neighbours. Which of
// several blocks from the same rank comes to which place differs from library to library, so the
// received bytes are compared with the plain run's.
//   random  a mix of calls, types, sizes and topologies; ranks lag
//   ahead   small calls, in which ranks that are no neighbours may run ahead of ranks that lag
//   refused calls that the library refuses on one rank
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "streams.hpp"
#include "typed_blocks.hpp"

using namespace battery;

namespace {

enum class Kind { allgather, allgatherv, alltoall, alltoallv, alltoallw };
constexpr int kinds = 5;
constexpr const char* names[kinds] = {"allgather", "allgatherv", "alltoall", "alltoallv",
                                      "alltoallw"};
constexpr Placing placings[kinds] = {Placing::even, Placing::by_extent, Placing::even,
                                     Placing::by_extent, Placing::by_bytes};

struct Graph {
    MPI_Comm comm = MPI_COMM_NULL;
    std::vector<int> sources, destinations;
    bool is_even = true;   // as many of these as of those, on all ranks
    bool is_wide = false;  // a rank may have hundreds
};

using Lists = std::vector<std::vector<int>>;  // by rank

Lists no_lists() { return Lists(static_cast<size_t>(world.size)); }

void shuffle(std::vector<int>& list, Random& random) {
    for (size_t i = list.size(); i > 1; --i)
        std::swap(list[i - 1], list[static_cast<size_t>(random.below(static_cast<int>(i)))]);
}

void shuffle_all(Lists& lists, Random& common) {
    for (std::vector<int>& list : lists) shuffle(list, common);
}

Graph random_cart(Random& common) {
    const int dimensions = common.between(1, 3);
    int extents[3] = {}, periods[3] = {};
    for (int i = 0; i < dimensions; ++i) {
        if (i != 0 && common.chance(40)) extents[i] = 1;
        periods[i] = common.chance(60);
    }
    Graph graph;
    MPI_Dims_create(world.size, dimensions, extents);
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, extents, periods, 0, &graph.comm);
    for (int i = 0; i < dimensions; ++i) {
        int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
        MPI_Cart_shift(graph.comm, i, 1, &below, &above);
        graph.sources.insert(graph.sources.end(), {below, above});
    }
    graph.destinations = graph.sources;
    return graph;
}

int random_edges(Random& common) { return common.chance(50) ? 0 : common.chance(30) ? 2 : 1; }

Graph random_graph(Random& common) {
    Lists neighbours = no_lists();
    for (int a = 0; a < world.size; ++a)
        for (int b = 0; b < a; ++b)
            for (int edges = random_edges(common); edges > 0; --edges) {
                neighbours[static_cast<size_t>(a)].push_back(b);
                neighbours[static_cast<size_t>(b)].push_back(a);
            }
    shuffle_all(neighbours, common);
    std::vector<int> index, edges;
    for (const std::vector<int>& list : neighbours) {
        edges.insert(edges.end(), list.begin(), list.end());
        index.push_back(static_cast<int>(edges.size()));
    }
    edges.push_back(0);  // the vector must not be empty
    Graph graph;
    MPI_Graph_create(MPI_COMM_WORLD, world.size, index.data(), edges.data(), 0, &graph.comm);
    graph.sources = graph.destinations = neighbours[static_cast<size_t>(world.rank)];
    return graph;
}

// A sum of permutations, or any edges.
Graph random_dist_graph(Random& common) {
    Graph graph;
    graph.is_even = common.chance(50);
    Lists sources = no_lists(), destinations = no_lists();
    std::vector<int> all(static_cast<size_t>(world.size));
    std::iota(all.begin(), all.end(), 0);
    graph.is_wide = graph.is_even && common.chance(20);
    for (int times = graph.is_wide ? common.between(50, 300) : common.below(4);
         times > 0 && graph.is_even; --times) {
        std::vector<int> to = all;
        shuffle(to, common);
        for (int a : all) {
            destinations[static_cast<size_t>(a)].push_back(to[static_cast<size_t>(a)]);
            sources[static_cast<size_t>(to[static_cast<size_t>(a)])].push_back(a);
        }
    }
    for (int i = 0; i < world.size * world.size && !graph.is_even; ++i)
        for (int edges = random_edges(common); edges > 0; --edges) {
            destinations[static_cast<size_t>(i / world.size)].push_back(i % world.size);
            sources[static_cast<size_t>(i % world.size)].push_back(i / world.size);
        }
    shuffle_all(sources, common);
    shuffle_all(destinations, common);
    graph.sources = sources[static_cast<size_t>(world.rank)];
    graph.destinations = destinations[static_cast<size_t>(world.rank)];
    MPI_Dist_graph_create_adjacent(
        MPI_COMM_WORLD, static_cast<int>(graph.sources.size()), graph.sources.data(),
        MPI_UNWEIGHTED, static_cast<int>(graph.destinations.size()), graph.destinations.data(),
        MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph.comm);
    return graph;
}

Graph random_topology(Random& common) {
    switch (common.below(3)) {
        case 0:
            return random_cart(common);
        case 1:
            return random_graph(common);
        default:
            return random_dist_graph(common);
    }
}

// Equal on all ranks.
struct Plan {
    Kind kind;
    Unit unit;
    int most;   // steps of units in a block
    int empty;  // percent of the blocks
    uint64_t id;

    bool gathers() const { return kind <= Kind::allgatherv; }
    // Several blocks between the same two ranks are of one length.
    int units(int from, int to) const {
        constexpr int step = 12;
        if (placings[static_cast<int>(kind)] == Placing::even) return step * most;
        if (gathers()) to = 0;
        Random random(id + static_cast<uint64_t>(from * 64 + to));
        return random.chance(empty) ? 0 : step * random.below(most + 1);
    }
};

Plan random_plan(const Graph& graph, Random& common, int most_bits) {
    Plan plan{};
    // MPICH 4.0.2 takes the numbers of sources and destinations of a w form for each other. And its
    // MPI_Pack leaves off the last bytes of some types once there are more than 150 or so.
    const bool has_w = graph.is_even && !graph.is_wide;
    plan.kind = static_cast<Kind>(common.below(has_w ? kinds : kinds - 1));
    plan.unit = static_cast<Unit>(common.below(4));
    if (graph.is_wide) most_bits = std::min(most_bits, 5);
    const int bits = common.between(0, common.chance(15) ? most_bits : most_bits / 2);
    plan.most = common.chance(5) ? 0 : common.between(1, 1 << bits);
    plan.empty = common.chance(20) ? 90 : 20;
    plan.id = common.next();
    return plan;
}

std::vector<int> units_given(const Plan& plan, const Graph& graph) {
    if (plan.gathers()) return {plan.units(world.rank, 0)};
    std::vector<int> units;
    for (const int to : graph.destinations) units.push_back(plan.units(world.rank, to));
    return units;
}

std::vector<int> units_taken(const Plan& plan, const Graph& graph) {
    std::vector<int> units;
    for (const int from : graph.sources) units.push_back(plan.units(from, world.rank));
    return units;
}

int even_count(const TypedBlocks& blocks) { return blocks.size() == 0 ? 0 : blocks.count(); }

int make_call(const Plan& plan, MPI_Comm comm, TypedBlocks& out, TypedBlocks& in) {
    switch (plan.kind) {
        case Kind::allgather:
            return MPI_Neighbor_allgather(out.block(0), out.count(), out.type(), in.address(),
                                          even_count(in), in.type(), comm);
        case Kind::allgatherv:
            return MPI_Neighbor_allgatherv(out.block(0), out.count(), out.type(), in.address(),
                                           in.counts(), in.displacements(), in.type(), comm);
        case Kind::alltoall:
            return MPI_Neighbor_alltoall(out.address(), even_count(out), out.type(), in.address(),
                                         even_count(in), in.type(), comm);
        case Kind::alltoallv:
            return MPI_Neighbor_alltoallv(out.address(), out.counts(), out.displacements(),
                                          out.type(), in.address(), in.counts(), in.displacements(),
                                          in.type(), comm);
        default:
            return MPI_Neighbor_alltoallw(out.address(), out.counts(), out.byte_displacements(),
                                          out.types(), in.address(), in.counts(),
                                          in.byte_displacements(), in.types(), comm);
    }
}

void exchange(const Graph& graph, Random& common, Random& own, int most_bits) {
    const Plan plan = random_plan(graph, common, most_bits);
    const Placing placing = placings[static_cast<int>(plan.kind)];
    TypedBlocks out(own, plan.unit, units_given(plan, graph),
                    plan.gathers() ? Placing::even : placing);
    TypedBlocks in(own, plan.unit, units_taken(plan, graph), placing);
    for (size_t b = 0; b < out.size(); ++b)
        out.fill(b, mix(plan.id + static_cast<uint64_t>(world.rank * 1000) + b));
    const std::string name = names[static_cast<int>(plan.kind)];
    check_equal(make_call(plan, graph.comm, out, in), MPI_SUCCESS, name.c_str());
    out.check_all("changed byte of a send buffer (offset)");
    in.add_to(topic("received by " + name));
}

// What else goes through the same memory.
void something_else(const Graph& graph, Random& common) {
    const int n = common.between(1, common.chance(20) ? 40000 : 500);
    const int root = Random(common.next()).below(world.size);
    std::vector<int> in(static_cast<size_t>(n), world.rank),
        out(static_cast<size_t>(n * world.size), -1);
    if (common.chance(50)) {
        MPI_Gather(in.data(), n, MPI_INT, out.data(), n, MPI_INT, root, graph.comm);
        if (world.rank != root) return;
    } else {
        MPI_Allgather(in.data(), n, MPI_INT, out.data(), n, MPI_INT, graph.comm);
    }
    check_equal(out.front(), 0, "the first rank's");
    check_equal(out.back(), world.size - 1, "the last rank's");
}

void gatherv_of_long_blocks(const Graph& graph, Random& common) {
    const int n = common.between(1000, 40000), root = Random(common.next()).below(world.size);
    std::vector<int> in(static_cast<size_t>(n), world.rank),
        out(static_cast<size_t>(n * world.size)), counts, displs;
    for (int r = 0; r < world.size; ++r) {
        counts.push_back(n);
        displs.push_back(n * r);
    }
    MPI_Gatherv(in.data(), n, MPI_INT, out.data(), counts.data(), displs.data(), MPI_INT, root,
                graph.comm);
    if (world.rank == root) check_equal(out.back(), world.size - 1, "the last rank's");
}

void random_stream() {
    Random choice = common_random(1), own = own_random(2);
    for (int round = 0; round < 14; ++round) {
        Random common = common_random(1000 + static_cast<uint64_t>(round));
        Graph graph = random_topology(common);
        for (int i = choice.between(10, 40); i > 0; --i) {
            if (common.chance(85))
                exchange(graph, common, own, 13);
            else if (common.chance(70))
                something_else(graph, common);
            else
                gatherv_of_long_blocks(graph, common);
            lag(own, 3);
        }
        MPI_Comm_free(&graph.comm);
    }
}

void small_calls_of_ranks_that_lag() {
    Random common = common_random(3), own = own_random(4);
    for (int round = 0; round < 4; ++round) {
        Graph graph = random_topology(common);
        for (int i = 0; i < 300; ++i) {
            exchange(graph, common, own, 4);
            lag(own, 2);
        }
        MPI_Comm_free(&graph.comm);
    }
}

// Calls that one rank alone is refused, and makes again rightly. All have neighbours.
void refused_calls() {
    Random common = common_random(5), own = own_random(6);
    const int extent = world.size, is_periodic = 1;
    Graph graph;
    graph.sources = {(world.rank + world.size - 1) % world.size, (world.rank + 1) % world.size};
    graph.destinations = graph.sources;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &extent, &is_periodic, 0, &graph.comm);
    MPI_Comm_set_errhandler(graph.comm, MPI_ERRORS_RETURN);
    std::vector<int> in(2000, 1), out(2000);
    const int counts[] = {10, 10}, displs[] = {0, 10}, negative[] = {10, -1};
    for (int round = 0; round < 60; ++round) {
        if (world.rank == round % world.size) {
            check_class(
                MPI_Neighbor_allgather(nullptr, 10, MPI_INT, out.data(), 10, MPI_INT, graph.comm),
                MPI_ERR_BUFFER, "Neighbor_allgather");
            check_class(
                MPI_Neighbor_allgather(in.data(), -1, MPI_INT, out.data(), 10, MPI_INT, graph.comm),
                MPI_ERR_COUNT, "Neighbor_allgather");
            check_class(MPI_Neighbor_allgather(in.data(), 1, MPI_DATATYPE_NULL, out.data(), 10,
                                               MPI_INT, graph.comm),
                        MPI_ERR_TYPE, "Neighbor_allgather");
            check_class(MPI_Neighbor_allgatherv(in.data(), 10, MPI_INT, nullptr, counts, displs,
                                                MPI_INT, graph.comm),
                        MPI_ERR_BUFFER, "Neighbor_allgatherv");
            check_class(
                MPI_Neighbor_alltoall(in.data(), 10, MPI_INT, nullptr, 10, MPI_INT, graph.comm),
                MPI_ERR_BUFFER, "Neighbor_alltoall");
            check_class(MPI_Neighbor_alltoallv(in.data(), negative, displs, MPI_INT, out.data(),
                                               counts, displs, MPI_INT, graph.comm),
                        MPI_ERR_COUNT, "Neighbor_alltoallv");
            check_class(MPI_Neighbor_alltoall(in.data(), 10, MPI_INT, out.data(), 10, MPI_INT,
                                              MPI_COMM_WORLD),
                        MPI_ERR_TOPOLOGY, "Neighbor_alltoall without a topology");
        }
        exchange(graph, common, own, 9);
    }
    MPI_Comm_free(&graph.comm);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (world.argument == "random") random_stream();
    if (world.argument == "ahead") small_calls_of_ranks_that_lag();
    if (world.argument == "refused") refused_calls();
    return end();
}
