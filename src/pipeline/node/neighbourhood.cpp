// SPDX-License-Identifier: BSD-3-Clause
// Topologies, as the library tells of them. Where several edges join the same two ranks, libraries
// differ in which block of the one comes to which place of the other (MPICH 4.0 takes those of
// Neighbor_alltoall in reverse order, 4.1 those of its v and w forms as well). So the ranks tell
// each other the numbers of their blocks by the library's own calls, once a communicator.
#include "neighbourhood.hpp"

#include <algorithm>
#include <new>

#include "neighbour_run.hpp"
#include "offload/api.hpp"

namespace vecmpi::pipeline::node {

std::optional<Degrees> degrees_of(MPI_Comm comm) noexcept {
    int kind = MPI_UNDEFINED;
    if (real.Topo_test(comm, &kind) != MPI_SUCCESS) return std::nullopt;
    Degrees degrees;
    int rank = 0, is_weighted = 0, dimensions = 0;
    switch (kind) {
        case MPI_CART:
            real.Cartdim_get(comm, &dimensions);
            return Degrees{2 * dimensions, 2 * dimensions};
        case MPI_GRAPH:
            real.Comm_rank(comm, &rank);
            real.Graph_neighbors_count(comm, rank, &degrees.in);
            return Degrees{degrees.in, degrees.in};
        case MPI_DIST_GRAPH:
            real.Dist_graph_neighbors_count(comm, &degrees.in, &degrees.out, &is_weighted);
            return degrees;
        default:
            return std::nullopt;
    }
}

bool are_of(const std::vector<EdgeSource>& edges, const std::vector<int>& sources) noexcept {
    return std::equal(
        edges.begin(), edges.end(), sources.begin(), sources.end(),
        [](const EdgeSource& edge, int source) noexcept {
            return edge.rank == source &&
                   (source == MPI_PROC_NULL || (edge.part >= 0 && edge.part < edge.parts));
        });
}

namespace {

// The weights are not asked for by MPI_UNWEIGHTED, which is a variable of the library's.
void list_neighbours(MPI_Comm comm, Neighbourhood& hood) {
    const auto [in, out] = hood.degrees();
    std::vector<int> weights(static_cast<size_t>(std::max({in, out, 1})));
    std::vector<int>&sources = hood.sources, &destinations = hood.destinations;
    int kind = MPI_UNDEFINED, rank = 0;
    real.Topo_test(comm, &kind);
    if (kind == MPI_DIST_GRAPH) {
        real.Dist_graph_neighbors(comm, in, sources.data(), weights.data(), out,
                                  destinations.data(), weights.data());
        return;
    }
    if (kind == MPI_GRAPH) {
        real.Comm_rank(comm, &rank);
        real.Graph_neighbors(comm, rank, in, sources.data());
    }
    for (size_t at = 0; kind == MPI_CART && at < sources.size(); at += 2)
        real.Cart_shift(comm, static_cast<int>(at / 2), 1, &sources[at], &sources[at + 1]);
    destinations = sources;
}

// Null: out of memory.
std::unique_ptr<Neighbourhood> make_neighbourhood(MPI_Comm comm) noexcept {
    try {
        auto hood = std::make_unique<Neighbourhood>();
        const Degrees degrees = degrees_of(comm).value_or(Degrees{});
        const auto in = static_cast<size_t>(degrees.in), out = static_cast<size_t>(degrees.out);
        hood->sources.resize(in, MPI_PROC_NULL);
        hood->destinations.resize(out, MPI_PROC_NULL);
        list_neighbours(comm, *hood);
        hood->of_alltoall.resize(in);
        hood->of_vectors.resize(in);
        hood->given.resize(std::max<size_t>(out, 1));
        hood->taken.resize(in);
        hood->rest_given.resize(out);
        hood->rest_taken.resize(in);
        return hood;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// Arguments of the calls by which ranks tell each other the numbers of their blocks. The vectors
// are never empty: the library refuses null buffers.
struct Telling {
    static constexpr int ints = sizeof(EdgeSource) / sizeof(int);
    std::vector<EdgeSource> told, heard;
    std::vector<int> counts, displs;

    Telling(const Degrees& degrees, int rank)
        : told(static_cast<size_t>(degrees.out) + 1), heard(static_cast<size_t>(degrees.in) + 1) {
        for (int k = 0; k < degrees.out; ++k) told[static_cast<size_t>(k)] = {rank, k, degrees.out};
        for (int k = 0; k <= std::max(degrees.in, degrees.out); ++k) {
            counts.push_back(ints);
            displs.push_back(ints * k);
        }
    }
    void by_alltoall(MPI_Comm comm, std::vector<EdgeSource>& edges) noexcept {
        std::fill(heard.begin(), heard.end(), EdgeSource{});
        real.Neighbor_alltoall(told.data(), ints, MPI_INT, heard.data(), ints, MPI_INT, comm);
        std::copy_n(heard.begin(), edges.size(), edges.begin());
    }
    // The w form takes the same order in all versions; MPICH 4.0 reads its counts wrongly where a
    // rank has more destinations than sources.
    void by_vectors(MPI_Comm comm, std::vector<EdgeSource>& edges) noexcept {
        std::fill(heard.begin(), heard.end(), EdgeSource{});
        real.Neighbor_alltoallv(told.data(), counts.data(), displs.data(), MPI_INT, heard.data(),
                                counts.data(), displs.data(), MPI_INT, comm);
        std::copy_n(heard.begin(), edges.size(), edges.begin());
    }
};

}  // namespace

// 1. Has everyone memory for what it asks, and parts for its neighbours? 2. Which block comes by
// which edge? 3. Does everyone believe it?
std::unique_ptr<Neighbourhood> learn_neighbourhood(MPI_Comm comm) noexcept {
    const NoCancellation scope;
    std::unique_ptr<Neighbourhood> hood = make_neighbourhood(comm);
    int rank = 0;
    real.Comm_rank(comm, &rank);
    std::optional<Telling> telling;
    try {
        if (hood) telling.emplace(hood->degrees(), rank);
    } catch (const std::bad_alloc&) {
    }
    if (!offload::all_can(comm, telling && hood->degrees().out <= most_neighbour_parts))
        return nullptr;
    telling->by_alltoall(comm, hood->of_alltoall);
    telling->by_vectors(comm, hood->of_vectors);
    const bool is_known =
        are_of(hood->of_alltoall, hood->sources) && are_of(hood->of_vectors, hood->sources);
    if (!offload::all_can(comm, is_known)) return nullptr;
    return hood;
}

}  // namespace vecmpi::pipeline::node
