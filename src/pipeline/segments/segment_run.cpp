// SPDX-License-Identifier: BSD-3-Clause
// What the decision rests on, and what is said of a segment.
#include "segment_run.hpp"

namespace vecmpi::pipeline {

unsigned segments_of_call(Collective collective, uint64_t bytes, MPI_Count elements,
                          const offload::CommTraits& traits, Decline& decline) noexcept {
    // Only communicators as large as the world are known to span its nodes.
    int world = 0;
    real.Comm_size(MPI_COMM_WORLD, &world);
    const bool several_nodes = !offload::agreement().one_node && traits.size == world;
    Counter why{};
    const unsigned n = number_of_segments({collective, bytes, elements, traits.size, several_nodes},
                                          settings(), &why);
    if (n == 0) decline.note(why);
    return n;
}

offload::CallFacts facts_of_segment(MPI_Comm comm, MPI_Count count, MPI_Datatype type) noexcept {
    offload::CallFacts facts;
    facts.comm = comm;
    facts.count = count;
    facts.type = type;
    facts.collective = true;
    return facts;
}

}  // namespace vecmpi::pipeline
