// SPDX-License-Identifier: BSD-3-Clause
// Facts of a call. Asks the library, moves no data.
#include "collective_call.hpp"

#include <algorithm>
#include <cstdint>

#include "candidate.hpp"
#include "choice.hpp"
#include "pipeline/api/calls_left.hpp"
#include "pipeline/segments/scattered_allreduce.hpp"

namespace vecmpi::pipeline {

namespace {
// No setting names a path for some collective.
bool are_automatic(const Settings& settings) noexcept {
    for (size_t i = 0; i < number_of_settable_collectives; ++i)
        if (!settings.paths_of(static_cast<Collective>(i)).ranges.empty()) return false;
    return !settings.reproducible;
}
}  // namespace

// Where nodes have several ranks, a small Allreduce is for their memory.
CallsLeft calls_left_of(const offload::Agreement& agreed, const Settings& settings) noexcept {
    CallsLeft left;
    if (!agreed.valid) return left;
    left.world_is_one_rank = agreed.one_rank;
    left.nothing_serves_later = !agreed.serves_jobs;
    if (agreed.one_node) {
        left.only_node_serves = are_automatic(settings);
        if (!left.only_node_serves) return left;
        left.user_ops = {true, scattered_from_bytes, scattered_from_ranks};
        return left;
    }
    left.world_is_over_hosts = true;
    left.ranks_are_alone = agreed.alone_on_nodes && settings.intranode != IntranodeMode::on;
    for (size_t i = 0; i < number_of_scheduled_collectives; ++i) {
        const auto collective = static_cast<Collective>(i);
        if (collective == Collective::allreduce && !left.ranks_are_alone) continue;
        left.below_bytes[i] = static_cast<uint32_t>(
            std::min<uint64_t>(librarys_below(collective, settings), UINT32_MAX));
    }
    return left;
}

void note_calls_left() noexcept { calls_left = calls_left_of(offload::agreement(), settings()); }

int out_of_memory(MPI_Comm comm) noexcept {
    real.Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
}

bool is_commutative(MPI_Op op) noexcept {
    int commutes = 0;
    return real.Op_commutative(op, &commutes) == MPI_SUCCESS && commutes != 0;
}

namespace {
// Nothing: no path of ours serves calls on it.
std::optional<offload::CommTraits> traits_to_serve(MPI_Comm comm, MPI_Datatype type,
                                                   MPI_Count count, Decline& decline) noexcept {
    // An error handler that the engine's thread calls cannot wait for that thread.
    if (offload::is_offload_thread() || !offload::engine_runs() || count < 0 ||
        !library::is_type_handle(type) || !library::is_comm_handle(comm))
        return std::nullopt;
    const offload::CommTraits traits = offload::comm_traits(comm);
    if (!traits.inter && traits.world_only) return traits;
    decline.note(Counter::decline_foreign);
    return std::nullopt;
}
}  // namespace

bool CollectiveCall::look_at(MPI_Datatype type, MPI_Count count) noexcept {
    // The program's operators may be scattered on one node, too.
    const bool is_served =
        may_be_scheduled_at_some_size(collective, !offload::agreement().one_node, settings()) ||
        (collective == Collective::allreduce && library::is_user_op(op));
    if (!is_served) decline.note(Counter::decline_layout);
    const bool meets_wishes = form.is_blocking() && private_comms_are_wanted();
    if (!is_served && !meets_wishes) return false;
    const auto found = traits_to_serve(comm, type, count, decline);
    if (!found) return false;
    traits = *found;
    if (may_be_refused(type)) return false;
    if (meets_wishes && private_comm_is_wanted(comm)) private_comm_of(*this);
    if (!is_served || root < 0 || root >= ranks()) return false;
    real.Comm_rank(comm, &rank);
    return true;
}

bool CollectiveCall::may_be_refused(MPI_Datatype type) const noexcept {
    return traits.handler != offload::CommTraits::Handler::fatal &&
           !offload::is_committed(type, comm);
}

bool CollectiveCall::may_be_refused(const BlockSide& side) const noexcept {
    if (side.blocks == 0) return false;
    return side.count < 0 || side.count > PTRDIFF_MAX / side.blocks ||
           !library::is_type_handle(side.type) || may_be_refused(side.type) ||
           (!side.is_written && side.buffer == MPI_IN_PLACE) || side.is_refused_buffer();
}

bool CollectiveCall::spans_world() const noexcept {
    if (offload::agreement().one_node) return false;
    int world = 0;
    real.Comm_size(MPI_COMM_WORLD, &world);
    return ranks() == world;
}

}  // namespace vecmpi::pipeline
