// SPDX-License-Identifier: BSD-3-Clause
// What is said of a call and of a segment.
#include "segment_run.hpp"

namespace vecmpi::pipeline {

void count_segmented(const CollectiveCall& call, uint64_t bytes) noexcept {
    count_call(static_cast<size_t>(call.form.call), Path::segmented, bytes);
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
