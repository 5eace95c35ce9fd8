// SPDX-License-Identifier: BSD-3-Clause
// Makes the communicators that collectives run on. Every rank is a member of one communicator of
// each shape.
#include "groups.hpp"

namespace battery {

Group describe(MPI_Comm comm) {
    Group group;
    group.comm = comm;
    MPI_Comm_rank(comm, &group.rank);
    MPI_Comm_size(comm, &group.size);
    std::vector<int> own(static_cast<size_t>(group.size));
    for (int i = 0; i < group.size; ++i) own[static_cast<size_t>(i)] = i;
    group.ranks.resize(own.size());
    MPI_Group members;
    MPI_Group everybody;
    MPI_Comm_group(comm, &members);
    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    MPI_Group_translate_ranks(members, group.size, own.data(), everybody, group.ranks.data());
    MPI_Group_free(&members);
    MPI_Group_free(&everybody);
    return group;
}

void Groups::add(MPI_Comm comm) { groups_.push_back(describe(comm)); }

Groups::Groups() {
    MPI_Comm comm;
    add(MPI_COMM_WORLD);
    add(MPI_COMM_SELF);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    add(comm);
    MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, world.rank, &comm);
    add(comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world.rank, &comm);
    add(comm);

    const int part = world.rank == 0 ? 0 : 1;  // rank 0 alone, the others together
    std::vector<int> members;
    for (int i = part; i < (part == 0 ? 1 : world.size); ++i) members.push_back(i);
    MPI_Group everybody;
    MPI_Group mine;
    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    MPI_Group_incl(everybody, static_cast<int>(members.size()), members.data(), &mine);
    MPI_Comm_create_group(MPI_COMM_WORLD, mine, part, &comm);
    add(comm);
    MPI_Group_free(&everybody);
    MPI_Group_free(&mine);
}

Groups::~Groups() {
    for (Group& group : groups_)
        if (group.comm != MPI_COMM_WORLD && group.comm != MPI_COMM_SELF) MPI_Comm_free(&group.comm);
}

}  // namespace battery
