// SPDX-License-Identifier: BSD-3-Clause
// What a PackPlan consists of, and how it is made of a datatype. Inside src/datatype only.
#pragma once

#include "decode.hpp"
#include "plan.hpp"
#include "vecmpi/base.hpp"
#include "vecmpi/datatype.hpp"

namespace vecmpi {

struct PlanSteps {
    Step one;     // of one element
    Step copies;  // of more: as many times its rounds
    int64_t bytes = 0;
    int64_t disjoint_copies = 0;
    int64_t most_bytes = 0;  // of a stream
    Isa isa = Isa::scalar;
};

// Pure. What the settings allow.
PackLimits pack_limits(PackMode mode, IsaChoice isa) noexcept;

// Pure. Bytes of the longest stream that was measured to gain by a plan: longer ones wait for
// memory, whoever moves them.
int64_t most_worth_packing(const Layout& layout, int64_t extent) noexcept;

// Pure. Null, and the reason, where the layout takes too large tables.
std::unique_ptr<const PlanSteps> make_steps(const Layout& layout, int64_t extent,
                                            const PackLimits& limits, Counter* why);

// Asks the library what the datatype is. Null, and the reason, where it is left to the library:
// what is dense is a plain copy there as well.
std::shared_ptr<const PackPlan> make_plan(MPI_Datatype type, Counter* why);

}  // namespace vecmpi
