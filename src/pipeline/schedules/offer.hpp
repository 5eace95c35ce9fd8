// SPDX-License-Identifier: BSD-3-Clause
// From a collective of the program to a schedule that serves it: what is common to all collectives.
#pragma once

#include "datatype/api.hpp"
#include "executor.hpp"
#include "pipeline/api.hpp"
#include "pipeline/call_facts.hpp"
#include "pipeline/choice.hpp"
#include "pipeline/rank_counts.hpp"

namespace vecmpi::pipeline {

// What a call asks for. Its op commutes. Equal on all ranks.
struct Asked {
    Collective collective;
    // As CostFacts counts them: mostly of the vector, or of a block.
    uint64_t bytes = 0;
    int64_t elements = 0;  // that the vector may be cut between
    bool user_op = false;
};

struct Offer {
    PrivateCommPointer comm;
    TimedTurn turn;           // of a blocking call
    ScheduleRequest request;  // collective, algorithm, rank, segments and layout are set
};

// The first question of a collective: facts of its communicator, or nothing where no schedule
// serves it at any size. A blocking call makes the private communicator that a nonblocking one
// wanted.
std::optional<offload::CommTraits> traits_to_schedule(const CollectiveForm& form,
                                                      Collective collective, MPI_Comm comm,
                                                      MPI_Datatype type, MPI_Count count,
                                                      Decline& decline) noexcept;
// Does one on some communicator, by nodes and settings alone? That is asked first of all.
bool is_served_at_some_size(Collective collective, Decline& decline) noexcept;
// The second: does some schedule serve this size, on some communicator?
bool is_worth_a_look(Collective collective, uint64_t bytes, Decline& decline) noexcept;

// The third. Blocking and persistent forms may make the private communicator, which is collective
// over comm.
std::optional<Offer> offer_schedule(const CollectiveForm& form, const Asked& asked, MPI_Comm comm,
                                    const offload::CommTraits& traits, Decline& decline) noexcept;

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
void count_schedule(const CollectiveForm& form, const Offer& offer, uint64_t bytes) noexcept;

// Makes the schedule and runs it in the form that the program asked for. Returns its error code, or
// nothing where no rank can keep a persistent one. `prepared`: operands, and what is packed.
std::optional<int> run_offer(const CollectiveForm& form, const Offer& offer,
                             PreparedCollective prepared, uint64_t bytes, MPI_Comm comm) noexcept;

}  // namespace vecmpi::pipeline
