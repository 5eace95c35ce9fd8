// SPDX-License-Identifier: BSD-3-Clause
// The plans of the program's datatypes, by handle, and what the library has spent on types that
// have none. Asks nobody what a type is. Inside src/datatype and its tests only.
//
// Glossary
//   place    of one datatype: its tally while it is counted, then the verdict
//   settle   the verdict: a plan, or the library for as long as the handle lives
#pragma once

#include <atomic>
#include <memory>

#include "contest.hpp"
#include "datatype/api.hpp"

namespace vecmpi::datatype {

// A plan with the handle that it is for, and the digest of the type that it was made of.
struct HeldPlan {
    HeldPlan(MPI_Datatype type, std::unique_ptr<const PlanSteps> steps, uint64_t digest) noexcept;
    const MPI_Datatype type;
    const uint64_t digest;
    const PackPlan plan;
    int64_t cut_bytes = 0;  // a piece of a message may end at each multiple of it; 0: not known
    mutable Contest contests[2][length_classes];  // by direction
    Contest& contest(kernels::Direction direction, MPI_Count bytes) const noexcept {
        return contests[static_cast<size_t>(direction)][length_class(bytes)];
    }
    HeldPlan* next = nullptr;  // of those that wait for a reader; under the table's lock
};

// While there is one, its plan stays, whatever becomes of the handle. At most 64 at a time find
// one.
class PlanInUse {
  public:
    explicit PlanInUse(MPI_Datatype type) noexcept;
    ~PlanInUse();
    PlanInUse(const PlanInUse&) = delete;
    PlanInUse& operator=(const PlanInUse&) = delete;
    const HeldPlan* get() const noexcept { return held_; }

  private:
    const HeldPlan* held_ = nullptr;
    std::atomic<const HeldPlan*>* reader_ = nullptr;
};

// The library has spent another `ns` on the type. What it spent in all, once that is at least
// `worth_ns`; 0 before, and where somebody decides or has decided. Who gets a number must call
// settle() or put_off().
uint64_t tally_library_time(MPI_Datatype type, uint64_t ns, uint64_t worth_ns) noexcept;
// No verdict: counted from 0 again, until it is worth twice as much as the last time.
void put_off(MPI_Datatype type) noexcept;
// Null: the library. A type whose handle was given back meanwhile is left alone.
void settle(MPI_Datatype type, std::unique_ptr<HeldPlan> held) noexcept;

// Forgets place and verdict.
void drop_place(MPI_Datatype type) noexcept;
void drop_all_places() noexcept;

// Plans in the table and those that wait for a reader: at most 64 of the latter.
size_t plans_alive() noexcept;

}  // namespace vecmpi::datatype
