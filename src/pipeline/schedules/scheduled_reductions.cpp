// SPDX-License-Identifier: BSD-3-Clause
// Reductions as schedules.
#include "pipeline/hierarchical_collectives.hpp"
#include "prepared_collective.hpp"
#include "scheduled_collectives.hpp"

namespace vecmpi::pipeline {

namespace {

// Operators of the program run only on the thread that asked for them.
bool executor_reduces(const CollectiveCall& call, MPI_Datatype type) noexcept {
    const offload::TypeShape shape = offload::shape_of(type);
    if (shape.bytes <= 0 || shape.extent != shape.bytes) return false;
    if (!library::is_user_op(call.op)) return offload::is_reducible(call.op, type);
    if (!call.form.is_blocking()) return false;
    MPI_Count lower_bound = 0, extent = 0;
    real.Type_get_true_extent_x(type, &lower_bound, &extent);
    return is_commutative(call.op) && lower_bound == 0 && extent == shape.bytes;
}

std::optional<int> run_reduction(const CollectiveCall& call, const Candidate& by,
                                 const Operands& what) noexcept {
    PreparedCollective prepared;
    prepared.operands = what;
    return run_schedule(call, by, std::move(prepared), what.bytes());
}

}  // namespace

bool schedule_can_reduce(CollectiveCall& call, MPI_Datatype type) noexcept {
    if (executor_reduces(call, type)) return true;
    call.decline.note(Counter::decline_type);
    return false;
}

std::optional<int> scheduled_reduction(const CollectiveCall& call, Candidate by,
                                       const Operands& what, bool in_place) noexcept {
    by.request.count = what.count;
    by.request.root = call.root;
    by.request.in_place = in_place;
    if (call.form.is_blocking() && !library::is_user_op(call.op) &&
        by.request.algorithm == CollectivePath::hierarchical) {
        if (const auto served = allreduce_by_slices(call, by, what)) {
            count_schedule(call, by, what.bytes());
            return served;
        }
    }
    return run_reduction(call, by, what);
}

std::optional<int> scheduled_reduce_scatter(const CollectiveCall& call, Candidate by,
                                            const Operands& what, const RankCounts& counts,
                                            bool in_place) noexcept {
    const auto blocks = blocks_of(counts, call.ranks(), 1);
    if (!blocks) return out_of_memory(call.comm);
    by.request.blocks = &*blocks;
    by.request.in_place = in_place;
    return run_reduction(call, by, what);
}

}  // namespace vecmpi::pipeline
