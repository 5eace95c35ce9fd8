// SPDX-License-Identifier: BSD-3-Clause
// Door of src/datatype: derived datatypes, packed and unpacked by plans of ours
// (docs/datatypes.md).
//
// Glossary
//   stream   the packed bytes of a buffer, in the order of its type map; MPI_Pack writes no more
//   element  one copy of the datatype; a buffer has `count` of them
//   plan     what moves the blocks of a datatype: made once, kept until its handle is given back
#pragma once

#include <mpi.h>

#include <memory>

#include "vecmpi/kernels.hpp"
#include "vecmpi/mpi_calls.hpp"

namespace vecmpi {

struct PlanSteps;

// Of one datatype; knows no handle. Any thread may use it.
class PackPlan {
  public:
    explicit PackPlan(std::unique_ptr<const PlanSteps> steps) noexcept;
    ~PackPlan();
    PackPlan(const PackPlan&) = delete;
    PackPlan& operator=(const PackPlan&) = delete;

    MPI_Count bytes() const noexcept { return bytes_; }  // of an element in the stream
    // How many elements may be unpacked: more may overlap each other.
    MPI_Count most_to_unpack() const noexcept { return most_to_unpack_; }

    // Bytes [first, first + bytes) of the stream of `count` elements at `memory`, to or from
    // `part`, which begins with byte `first`.
    void copy(Direction direction, void* part, void* memory, MPI_Count count, MPI_Count first,
              MPI_Count bytes) const noexcept;
    // The same of the whole stream, counted by the kernel that moves it.
    void copy_all(Direction direction, void* packed, void* memory, MPI_Count count) const noexcept;

  private:
    std::unique_ptr<const PlanSteps> steps_;
    MPI_Count bytes_, most_to_unpack_;
};

// One call of MPI_Pack or MPI_Unpack (MPI 4.0, 5.2).
struct PackCall {
    Call call;
    Direction direction;
    void* memory;  // never written when packing
    MPI_Count count;
    MPI_Datatype type;
    void* packed;  // never written when unpacking
    MPI_Count packed_bytes;
    MPI_Count position;
    MPI_Comm comm;
};

// True where the whole call was served, and *end is the position behind it. False, and nothing
// done: the library is to serve it. *timed_since_ns is for note_packed_by_library() then.
bool pack_by_plan(const PackCall& call, MPI_Count* end, uint64_t* timed_since_ns) noexcept;
// The library served it without an error. A datatype on which it has spent twenty times what a plan
// costs gets one, which must give the bytes that the library gave. Then library and plan serve the
// calls by turns until one is known to be faster.
void note_packed_by_library(const PackCall& call, MPI_Count end, uint64_t timed_since_ns) noexcept;

// Before a handle is given back to the library, and after it gave out one that is surely new.
void forget_plan(MPI_Datatype type) noexcept;
// After MPI_Type_commit, of a new handle or of one that was committed before: a plan of another
// type goes.
void check_plan(MPI_Datatype type) noexcept;
// After MPI_Finalize.
void forget_plans() noexcept;

}  // namespace vecmpi
