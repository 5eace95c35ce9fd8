// SPDX-License-Identifier: BSD-3-Clause
// From a datatype to its plan. Inside src/datatype and its tests only.
#pragma once

#include <optional>

#include "base/api.hpp"
#include "datatype/api.hpp"
#include "decode.hpp"
#include "kept_plan.hpp"
#include "kernel_choice.hpp"

namespace vecmpi::datatype {

// Does a plan have to be worth it, and to win a trial? Else a setting asks for plans.
inline bool is_weighed() noexcept { return settings().pack == PackMode::automatic; }

// What a PackPlan consists of.
struct PlanSteps {
    PackStep copies;              // for any number of elements: as many times its rounds
    std::optional<PackStep> one;  // for one element, where that is moved otherwise
    // From the buffer's address to the lowest byte, from which the steps count: a type of absolute
    // addresses (MPI_BOTTOM) is like any other.
    int64_t lowest = 0;
    int64_t bytes = 0;
    int64_t disjoint_copies = 0;
    size_t memory_bytes = 0;  // of the steps and their tables
    kernels::Isa isa = kernels::Isa::scalar;
    const PackStep& of(int64_t count) const noexcept { return count == 1 && one ? *one : copies; }
};

// Pure. What the settings allow, with this host's table of kernels.
kernels::PackLimits pack_limits(PackMode mode, IsaChoice isa, const PackTable& table = {}) noexcept;

// Pure. Null, with the reason in *why, where the plan would take more than most_plan_bytes.
std::unique_ptr<PlanSteps> make_steps(const TypeMap& map, int64_t extent,
                                      const kernels::PackLimits& limits, Counter* why);

// Size and true bounds are those that the library gives for the type.
bool agrees_with_library(const TypeMap& map, MPI_Datatype type) noexcept;

// `plan` is null where the library is to pack, for the reason `why`. Not final where the
// description is too long for what the library has spent on the type so far.
struct MadePlan {
    PlanReference plan;
    Counter why{};
    bool is_final = true;
};
// Asks the library what the datatype is. A dense one gets no plan: the library copies it as well.
// But in external32 it gets one, for calls of that form alone.
MadePlan make_plan(MPI_Datatype type, uint64_t spent_ns, DataForm form = DataForm::native);
// The plan that was made of another handle of such a type. Null: none. Reads no description where
// none of its size is kept.
PlanReference known_plan(MPI_Datatype type);

// In a call of the program that holds the type: its plan, for packing after the call. One that is
// used many times is made at once, others when packing has taken the library long enough. It may
// not have been compared. Null: the library packs.
PlanReference plan_to_keep(MPI_Datatype type, Uses uses) noexcept;
// That the library has packed it after the call.
void tally_packed_later(MPI_Datatype type, uint64_t ns) noexcept;

// What a comparison with the library's bytes has shown; a refutation is final.
void prove(const KeptPlan& kept, bool is_right) noexcept;
void prove_external(const KeptPlan& kept, bool is_right) noexcept;
constexpr MPI_Count compared_at_once = 4 << 10;  // bytes
// Does the plan pack the `expected` bytes [first, first + bytes) of the stream of `count` elements?
// Padding is not compared. `width`: so many bytes are reversed each time; `first` and `bytes` are
// multiples of it.
bool packs_to(const KeptPlan& kept, void* memory, MPI_Count count, MPI_Count first, MPI_Count bytes,
              const char* expected, size_t width = 1) noexcept;

// A plan is made once the library has spent this many times as long on a type: so it adds at most a
// quarter, however soon the type is freed, and nothing once such a type comes again (PlanStore).
constexpr uint64_t worth_of_plan = 4;
constexpr uint64_t plan_ns = 4'000, entry_ns = 16;  // what a plan takes, and each of its entries
constexpr uint64_t least_worth_ns = worth_of_plan * (plan_ns + 16 * entry_ns);
constexpr uint64_t least_call_ns = 32;  // less than any call of the library takes
// What the library must have spent on a type for the first look at it.
uint64_t first_worth_ns() noexcept;
// Pure. How many entries a description may have to be worth a plan then.
size_t worth_describing(uint64_t spent_ns) noexcept;

}  // namespace vecmpi::datatype
