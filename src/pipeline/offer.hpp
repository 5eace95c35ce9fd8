// SPDX-License-Identifier: BSD-3-Clause
// From a collective of the program to a schedule for it, or to none: what is common to all
// collectives.
#pragma once

#include "calls.hpp"
#include "choice.hpp"
#include "datatype/api.hpp"
#include "executor.hpp"
#include "pipeline/api.hpp"

namespace vecmpi::pipeline {

// What a call asks for; an op commutes. All of it is equal on all ranks.
struct Asked {
    Collective collective;
    uint64_t bytes = 0;    // as its setting counts them: of the vector; allgather: one rank's part
    int64_t elements = 0;  // that the vector may be cut between
    bool user_op = false;
};

struct Offer {
    PrivateCommPointer comm;
    ScheduleRequest request;  // collective, algorithm, rank, segments and layout are set
};

// Before all else of a collective: the facts of its communicator, or nothing where no schedule
// serves it at any size. A blocking one makes the private communicator that a nonblocking one
// wanted.
std::optional<offload::CommTraits> traits_to_schedule(const CollectiveForm& form,
                                                      Collective collective, MPI_Comm comm,
                                                      MPI_Datatype type, MPI_Count count,
                                                      Decline& decline) noexcept;
// Then: false where no schedule serves this size, whatever the communicator.
bool is_worth_a_look(Collective collective, uint64_t bytes, Decline& decline) noexcept;

// Nothing: the library's collective, or another of ours. Blocking and persistent forms may make the
// private communicator, which is collective over comm.
std::optional<Offer> offer_schedule(const CollectiveForm& form, const Asked& asked, MPI_Comm comm,
                                    const offload::CommTraits& traits, Decline& decline) noexcept;

// A part of a program's buffer that goes through packed memory, because its type is not the same
// bytes in memory as on the wire.
class PackedPart {
  public:
    // first: offset in packed memory, in bytes. But for a blocking collective, which has a
    // TypeInUse, the type is kept: a program may free its own meanwhile.
    PackedPart(const CollectiveForm& form, const void* buffer, MPI_Count count, MPI_Datatype type,
               MPI_Count first) noexcept;
    PackedPart(PackedPart&& other) noexcept;
    ~PackedPart();
    PackedPart& operator=(PackedPart&&) = delete;

    int pack(char* packed, MPI_Comm comm) const noexcept;
    int unpack(const char* packed, MPI_Comm comm) const noexcept;

  private:
    const void* buffer_;
    MPI_Count count_;
    MPI_Datatype type_;
    MPI_Count first_;
    MPI_Count bytes_;
    bool is_kept_;
    datatype::PackableBuffer::Handle handle_;
};

// All that a run of the collective needs, once or again and again (persistent).
struct Recipe {
    PrivateCommPointer comm;
    MPI_Comm program_comm = MPI_COMM_NULL;
    std::shared_ptr<const Schedule> schedule;
    Elements elements;
    std::optional<uint32_t> persistent_number;
    bool caller_waits = false;  // in the call itself
    // With packed_bytes, elements.input and output are ignored: both are packed memory.
    size_t packed_bytes = 0;
    std::vector<PackedPart> packed_before, unpacked_after;
};

// In the report.
void count_schedule(const CollectiveForm& form, const Offer& offer, uint64_t bytes) noexcept;

// Makes the schedule and runs it in the form that the program asked for; returns its error code, or
// nothing where no rank can keep a persistent one. `recipe`: what is sent,
// received and reduced.
std::optional<int> run_offer(const CollectiveForm& form, const Offer& offer, Recipe recipe,
                             uint64_t bytes, MPI_Comm comm) noexcept;

}  // namespace vecmpi::pipeline
