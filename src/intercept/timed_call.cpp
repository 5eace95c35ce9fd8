// SPDX-License-Identifier: BSD-3-Clause
// How many bytes a call moves, asked of arguments that the library has not looked at yet: what it
// may refuse counts as nothing.
#include "timed_call.hpp"

namespace vecmpi::intercept {

namespace {

// 0 where it is no communicator, and between groups: whose counts an array has, is the call's
// affair.
int ranks_of(MPI_Comm comm) noexcept {
    if (!library::is_comm_handle(comm)) return 0;
    const offload::CommTraits traits = offload::comm_traits(comm);
    return traits.inter ? 0 : traits.size;
}

}  // namespace

void TimedCall::add(MPI_Count count, MPI_Datatype type) noexcept {
    if (!library::is_type_handle(type) ||
        !(library::is_builtin_type(type) || library::errors_can_be_quiet()))
        return;
    const library::QuietErrors question;  // the handle may be one that was freed
    add_bytes(static_cast<uint64_t>(count) * static_cast<uint64_t>(offload::size_of(type)));
}

void TimedCall::moves_for_each(MPI_Count count, MPI_Datatype type, MPI_Comm comm) noexcept {
    if (counts()) moves(count * ranks_of(comm), type);
}

void TimedCall::moves_all(offload::RankArray counts_of_ranks, MPI_Datatype type,
                          MPI_Comm comm) noexcept {
    if (!counts() || counts_of_ranks.missing()) return;
    MPI_Count sum = 0;
    for (int rank = 0, ranks = ranks_of(comm); rank < ranks; ++rank) sum += counts_of_ranks[rank];
    moves(sum, type);
}

void TimedCall::moves_own(offload::RankArray counts_of_ranks, MPI_Datatype type,
                          MPI_Comm comm) noexcept {
    if (!counts() || counts_of_ranks.missing() || ranks_of(comm) == 0) return;
    int rank = 0;
    real.Comm_rank(comm, &rank);
    moves(counts_of_ranks[rank], type);
}

}  // namespace vecmpi::intercept
