// SPDX-License-Identifier: BSD-3-Clause
// Who serves a call over several nodes: one decision, by the call, its communicator, settings, the
// cost model (choice.hpp) and trials. Equal on all ranks. Who was chosen runs the call to its end.
#pragma once

#include "collective_call.hpp"
#include "pipeline/api/turn.hpp"
#include "private_comm.hpp"

namespace vecmpi::pipeline {

// What the choice rests on beside the call.
struct Asked {
    uint64_t bytes = 0;    // as CostFacts counts them: mostly of the vector, or of a block
    int64_t elements = 0;  // that the vector, or the largest block, may be cut between
    bool can_be_scheduled = true;
    bool can_be_cut = false;  // into segments of the library's calls
};

struct Candidate {
    enum class Kind : uint8_t {
        library,
        schedule,   // of ours
        segments,   // of the library's nonblocking call
        scattered,  // the library's Reduce_scatter and Allgatherv
    };
    Kind kind = Kind::library;
    TimedTurn turn{};           // of a blocking call
    PrivateCommPointer own{};   // of a schedule
    ScheduleRequest request{};  // collective, algorithm, rank, segments and layout are set
    unsigned segments = 0;      // of the library's calls
};

// Blocking and persistent forms may make the private communicator, which is collective over the
// call's. With the library's turn its call is timed; mostly the call's reason is noted.
Candidate candidate_for(CollectiveCall& call, const Asked& asked) noexcept;

// At least the elements of the largest message that a schedule sends, equal on all ranks. elements:
// as of Asked. Pure.
int64_t most_in_message(Collective collective, int64_t elements, int ranks) noexcept;

// Is it worth to look whether a schedule could serve a call of this size?
bool may_be_scheduled(CollectiveCall& call, uint64_t bytes) noexcept;

// Known, or made by a blocking or persistent call. Null: there is none (yet).
PrivateCommPointer private_comm_of(const CollectiveCall& call) noexcept;

}  // namespace vecmpi::pipeline
