// SPDX-License-Identifier: BSD-3-Clause
// Random Cartesian and graph topologies of all ranks, with this rank's neighbours.
#pragma once

#include <vector>

#include "battery.hpp"

namespace battery {

struct Topology {
    MPI_Comm comm;
    std::vector<int> sources;
    std::vector<int> destinations;
};

inline Topology make_cart(Random& random) {
    const int dimensions = random.between(1, 2);
    int extents[2] = {0, 0};
    int periods[2] = {random.below(2), random.below(2)};
    Topology topology;
    MPI_Dims_create(world.size, dimensions, extents);
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, extents, periods, 0, &topology.comm);
    for (int i = 0; i < dimensions; ++i) {
        int below;
        int above;
        MPI_Cart_shift(topology.comm, i, 1, &below, &above);
        topology.sources.insert(topology.sources.end(), {below, above});
    }
    topology.destinations = topology.sources;
    return topology;
}

// As many sources as destinations: MPICH 4.0.2 mixes their numbers up in the v and w forms.
inline Topology make_graph(Random& random) {
    std::vector<int> sources;
    std::vector<int> destinations;
    for (int distance = 0; distance < world.size; ++distance) {
        if (!random.chance(60)) continue;
        destinations.push_back((world.rank + distance) % world.size);
        sources.push_back((world.rank + world.size - distance) % world.size);
    }
    Topology topology;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(),
                                   MPI_UNWEIGHTED, static_cast<int>(destinations.size()),
                                   destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &topology.comm);
    topology.sources = sources;
    topology.destinations = destinations;
    return topology;
}

}  // namespace battery
