// SPDX-License-Identifier: BSD-3-Clause
// A table of plans by datatype handle, and of what the library has spent on types without one. Asks
// nobody what a type is. Inside src/datatype and its tests only.
//
// Glossary
//   place     of one datatype: first its tally, then its verdict
//   verdict   a plan, or the library for as long as the handle lives
#pragma once

#include <atomic>
#include <memory>

#include "kept_plan.hpp"

namespace vecmpi::datatype {

// A plan and the handle that it is for.
struct HeldPlan {
    HeldPlan(MPI_Datatype of, PlanReference plan) noexcept : type(of), kept(std::move(plan)) {}
    const MPI_Datatype type;
    const PlanReference kept;
    HeldPlan* next = nullptr;  // of the retired ones; under the table's lock
};

// May two threads make calls at once? See expect_one_caller().
bool may_be_called_at_once() noexcept;

// False where there is a verdict: then nothing is counted.
bool is_counted(MPI_Datatype type) noexcept;
// The program has committed the type: until its handle goes it may be asked about. There is no
// verdict. (Where the set is full, it may be forgotten.)
void note_committed(MPI_Datatype type) noexcept;
bool is_counted_and_committed(MPI_Datatype type) noexcept;
// Adds `ns` that the library has spent on the type. Returns the sum to one caller, once it is at
// least `worth_ns`: that one decides, and must call settle() or put_off(). Returns 0 to all others.
uint64_t tally_library_time(MPI_Datatype type, uint64_t ns, uint64_t worth_ns) noexcept;
// No verdict: counts from 0 again, to twice as much as the last time.
void put_off(MPI_Datatype type) noexcept;
// The verdict; null: the library. Ignored where the handle was given back meanwhile.
void settle(MPI_Datatype type, PlanReference plan) noexcept;
// The same without a tally before: the plan of a type that was known when its handle came.
void give_plan(MPI_Datatype type, PlanReference plan) noexcept;

// Forgets tally and verdict; empty_table() does so for all types.
void drop_place(MPI_Datatype type) noexcept;
void empty_table() noexcept;

// Plans in the table, and retired ones that somebody uses: at most 64 of these.
size_t plans_alive() noexcept;

}  // namespace vecmpi::datatype
