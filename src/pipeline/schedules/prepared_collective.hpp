// SPDX-License-Identifier: BSD-3-Clause
// A collective that a schedule serves, made ready and run: what is common to all collectives.
#pragma once

#include "datatype/api.hpp"
#include "executor.hpp"
#include "pipeline/candidate.hpp"
#include "pipeline/rank_counts.hpp"

namespace vecmpi::pipeline {

// The blocks of a vector, one a rank, one behind the other. Counted in units of which an element
// has so many. Nothing: out of memory.
std::optional<Blocks> blocks_of(const RankCounts& counts, int ranks, MPI_Count units) noexcept;

// All that a run of the collective needs, once or again and again (persistent).
struct PreparedCollective {
    PrivateCommPointer comm;
    MPI_Comm program_comm = MPI_COMM_NULL;
    std::shared_ptr<const Schedule> schedule;
    Operands operands;
    std::optional<uint32_t> persistent_number;
    bool caller_waits = false;  // in the call itself

    // Where data are packed. Then the schedule's input is the packed memory, and its output lies
    // there, too.
    struct Part {
        datatype::PackedBuffer buffer;
        MPI_Count first;  // where its bytes lie in the packed memory
    };
    size_t packed_bytes = 0, packed_output = 0;  // where the output begins
    std::vector<Part> packed_before, unpacked_after;
    // Of the parts' types, unless the call is blocking, whose caller holds these (TypeInUse).
    std::vector<datatype::TypeReference> types;
};

// In the report.
void count_schedule(const CollectiveCall& call, const Candidate& by, uint64_t bytes) noexcept;

// Makes the schedule and runs it in the form that the program asked for. Returns its error code, or
// nothing where no rank can keep a persistent one. `prepared`: operands, and what is packed.
std::optional<int> run_schedule(const CollectiveCall& call, const Candidate& by,
                                PreparedCollective prepared, uint64_t bytes) noexcept;

}  // namespace vecmpi::pipeline
