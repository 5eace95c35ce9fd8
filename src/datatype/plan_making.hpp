// SPDX-License-Identifier: BSD-3-Clause
// From a datatype to its plan. Inside src/datatype and its tests only.
#pragma once

#include <optional>

#include "base/api.hpp"
#include "datatype/api.hpp"
#include "decode.hpp"
#include "kernel_choice.hpp"
#include "plans_by_handle.hpp"

namespace vecmpi::datatype {

// Does a plan have to be worth it, and to win a trial? Else a setting asks for plans.
inline bool is_weighed() noexcept { return settings().pack == PackMode::automatic; }

// What a PackPlan consists of.
struct PlanSteps {
    PackStep copies;              // for any number of elements: as many times its rounds
    std::optional<PackStep> one;  // for one element, where that is moved otherwise
    int64_t bytes = 0;
    int64_t disjoint_copies = 0;
    kernels::Isa isa = kernels::Isa::scalar;
    const PackStep& of(int64_t count) const noexcept { return count == 1 && one ? *one : copies; }
};

// Pure. What the settings allow, with this host's table of kernels.
kernels::PackLimits pack_limits(PackMode mode, IsaChoice isa, const PackTable& table = {}) noexcept;

// Pure. Null, with the reason in *why, where the plan would take more than most_plan_bytes.
std::unique_ptr<PlanSteps> make_steps(const TypeMap& map, int64_t extent,
                                      const kernels::PackLimits& limits, Counter* why);

// `held` is null where the library is to pack, for the reason `why`. Not final where the
// description is too long for what the library has spent on the type so far.
struct MadePlan {
    std::unique_ptr<HeldPlan> held;
    Counter why{};
    bool is_final = true;
};
// Asks the library what the datatype is. A dense one gets no plan: the library copies it as well.
MadePlan make_plan(MPI_Datatype type, uint64_t spent_ns);

constexpr MPI_Count compared_at_once = 4 << 10;  // bytes
// Does the plan pack the `expected` bytes [first, first + bytes) of the stream of `count` elements?
bool packs_to(const PackPlan& plan, void* memory, MPI_Count count, MPI_Count first, MPI_Count bytes,
              const char* expected) noexcept;

// Pure. What the library spends on a call at least: its rate is taken from long blocks.
uint64_t library_ns(int64_t bytes) noexcept;
// Spent by the library on a type before a plan is made. So a plan adds a twentieth at most, however
// soon the type is freed.
constexpr uint64_t least_worth_ns = 100'000;
// Pure. How many entries a description may have to be worth a plan then.
size_t worth_describing(uint64_t spent_ns) noexcept;

}  // namespace vecmpi::datatype
