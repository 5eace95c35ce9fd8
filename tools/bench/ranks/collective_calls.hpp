// SPDX-License-Identifier: BSD-3-Clause
// The one table of collectives that `collectives` measures: each in its blocking, nonblocking and
// persistent form, with the same arguments. It times nothing.
#pragma once

#include <mpi.h>

#include <vector>

namespace vecmpi::bench {

// What a call may need. Lists have an entry for each rank, at least two (neighbours of a ring).
struct CollectiveArguments {
    const void* in;
    void* out;
    int count;  // floats that this rank gives
    int block;  // floats of one block
    const int *counts, *displacements, *byte_displacements;
    const MPI_Aint* long_displacements;  // the same in bytes
    const MPI_Datatype* types;
    MPI_Comm comm;
};

// Of a vector that has a block for each of somebody: bytes are the whole vector.
enum class Blocks { none, ranks, neighbours };

// Whose buffer MPI_IN_PLACE stands for.
enum class InPlace { never, send, send_of_root, receive_of_root };

// Who can have returned from a call that another rank has not yet entered.
enum class Ahead { nobody, root, all_but_root, lower_ranks };

struct CollectiveCall {
    const char* name;
    Blocks blocks;
    InPlace in_place;
    Ahead ahead;
    void (*make)(const CollectiveArguments&);
    void (*post)(const CollectiveArguments&, MPI_Request*);
    void (*prepare)(const CollectiveArguments&, MPI_Request*);  // null: mpi.h is older than MPI 4

    bool has_size() const;
    bool on_ring() const;  // needs a topology
};

const std::vector<CollectiveCall>& collective_calls();

}  // namespace vecmpi::bench
