// SPDX-License-Identifier: BSD-3-Clause
// Intra-communicators of several shapes with the world ranks of their members. Must not know what
// runs on them.
#pragma once

#include <vector>

#include "battery.hpp"

namespace battery {

struct Group {
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int size = 1;
    std::vector<int> ranks;  // in MPI_COMM_WORLD, by rank in comm

    // Equal on the members, another one on other groups.
    Random random(uint64_t stream) const {
        return Random(mix(world.seed) ^ (stream * 1009 + static_cast<uint64_t>(ranks[0]) + 1));
    }
};

Group describe(MPI_Comm comm);

// The world, a duplicate, its halves, reversed order, self, a part made by Comm_create_group.
class Groups {
  public:
    Groups();
    ~Groups();
    Groups(const Groups&) = delete;
    Groups& operator=(const Groups&) = delete;
    const std::vector<Group>& all() const { return groups_; }

  private:
    void add(MPI_Comm comm);
    std::vector<Group> groups_;
};

}  // namespace battery
