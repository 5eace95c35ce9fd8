// SPDX-License-Identifier: BSD-3-Clause
// What the decision rests on, and what is said of a segment.
#include "segment_run.hpp"

namespace vecmpi::pipeline {

unsigned segments_of_call(Collective collective, uint64_t bytes, MPI_Count elements,
                          const offload::CommTraits& traits, Decline& decline) noexcept {
    Counter why{};
    const unsigned n = number_of_segments(
        {collective, bytes, elements, traits.size, spans_world(traits)}, settings(), &why);
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
