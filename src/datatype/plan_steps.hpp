// SPDX-License-Identifier: BSD-3-Clause
// What a PackPlan consists of, and how it is made of a datatype. Inside src/datatype only.
#pragma once

#include <optional>

#include "base/api.hpp"
#include "datatype/api.hpp"
#include "decode.hpp"
#include "plan.hpp"
#include "plan_table.hpp"

namespace vecmpi::datatype {

struct PlanSteps {
    PackStep copies;              // of any number of elements: as many times its rounds
    std::optional<PackStep> one;  // of one element, where it is moved otherwise: a few small tables
    int64_t bytes = 0;
    int64_t disjoint_copies = 0;
    kernels::Isa isa = kernels::Isa::scalar;
    const PackStep& of(int64_t count) const noexcept { return count == 1 && one ? *one : copies; }
};

// Pure. What the settings allow, and this host's table of kernels.
kernels::PackLimits pack_limits(PackMode mode, IsaChoice isa, const PackTable& table = {}) noexcept;

// Pure. Null, and the reason, where the plan would take more than most_plan_bytes.
std::unique_ptr<PlanSteps> make_steps(const Layout& layout, int64_t extent,
                                      const kernels::PackLimits& limits, Counter* why);

// `held` is null, for the reason `why`, where the library is to pack. Not final: the description
// has more than `entries` entries, which may be worth it later.
struct MadePlan {
    std::unique_ptr<HeldPlan> held;
    Counter why{};
    bool is_final = true;
};
// Asks the library what the datatype is; what is dense is a plain copy there as well.
MadePlan make_plan(MPI_Datatype type, size_t entries);

// Whether bytes [first, first + bytes) of the stream of `count` elements at `memory` are these.
constexpr MPI_Count compared_at_once = 4 << 10;  // bytes, at most
bool packs_to(const PackPlan& plan, void* memory, MPI_Count count, MPI_Count first, MPI_Count bytes,
              const char* expected) noexcept;

// Pure. What the library spends on a call, at the rate at which it copies long blocks: it spends at
// least that.
uint64_t library_ns(int64_t bytes) noexcept;
// What the library must have spent on a type before a plan is made. A plan then adds a twentieth at
// most, however soon the type is given back.
constexpr uint64_t least_worth_ns = 100'000;
// Pure. Entries that the description of a type may have to be worth a plan then.
size_t worth_describing(uint64_t spent_ns) noexcept;

}  // namespace vecmpi::datatype
