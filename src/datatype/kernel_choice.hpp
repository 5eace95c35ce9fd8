// SPDX-License-Identifier: BSD-3-Clause
// From a type map to the steps of a plan: which kernel moves which part, with its tables. Pure.
// Inside src/datatype and its tests only.
#pragma once

#include "pack_step.hpp"
#include "type_map.hpp"

namespace vecmpi::datatype {

// 64 Ki blocks of different lengths take 1 MiB. A stream of 4 MiB in blocks of 1 to 8 ints takes
// 3.7 MiB, a record up to 2.5 KiB.
constexpr size_t most_plan_bytes = size_t{4} << 20;

// The memory that a plan may still take. Once it is exceeded, steps are incomplete, and there is no
// plan.
struct PlanRoom {
    size_t bytes = most_plan_bytes;
    bool is_exceeded = false;
    void take(size_t taken) noexcept {
        is_exceeded = is_exceeded || taken > bytes;
        bytes -= is_exceeded ? 0 : taken;
    }
};

// `rounds` copies of a type map, `stride` bytes apart.
PackStep plan_rounds(const TypeMap& map, int64_t rounds, int64_t stride,
                     const kernels::PackLimits& limits, PlanRoom& room);
PackStep plan_once(const TypeMap& map, const kernels::PackLimits& limits, PlanRoom& room);

// Any number of copies, `extent` bytes apart. The step is that of one copy: n copies are n times
// its rounds.
PackStep plan_copies(const TypeMap& map, int64_t extent, const kernels::PackLimits& limits,
                     PlanRoom& room);

}  // namespace vecmpi::datatype
