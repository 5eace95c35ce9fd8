// SPDX-License-Identifier: BSD-3-Clause
// Turns of candidates over several nodes: all ranks begin them together, and judge by the slowest.
#include "trials_over_nodes.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "learned.hpp"
#include "private_comm.hpp"

namespace vecmpi::pipeline {

namespace {

using base::CommShape;
using base::ShownTime;
using base::Trial;

constexpr size_t class_of(uint64_t bytes) noexcept {
    return std::min<size_t>(static_cast<size_t>(std::bit_width(bytes)), classes_over_nodes - 1);
}

std::mutex finding;
std::map<CommShape, FoundOverNodes>& found_by_shape() {
    static auto* const found = new std::map<CommShape, FoundOverNodes>;  // outlives all callers
    return *found;
}

// By earlier jobs.
FoundOverNodes learned_before(const CommShape& shape) noexcept {
    FoundOverNodes found;
    for (auto& of_collective : found) of_collective.fill(Trial::open);
    if (shape.nodes > 1 && offload::agreement().profile) adopt_learned(shape, found);
    return found;
}

void remember(const CommShape& shape, const TriedCall& tried, unsigned winner) noexcept {
    const std::lock_guard lock(finding);
    try {
        const auto [found, is_new] = found_by_shape().try_emplace(shape, learned_before(shape));
        found->second[static_cast<size_t>(tried.collective)][class_of(tried.bytes)] =
            static_cast<uint8_t>(winner);
    } catch (const std::bad_alloc&) {
        // The next communicator tries again.
    }
}

void show(const CommShape& shape, const TriedCall& tried, const Trial::Times& times,
          unsigned winner) noexcept {
    const char* const names[] = {tried.ours, "segments", "the library"};
    const ShownTime ours(times[0]), segments(times[1]), library(times[2]);
    const bool in_kib = tried.bytes >= 1024;
    const uint64_t shown = in_kib ? tried.bytes >> 10 : tried.bytes;
    log_line(LogLevel::info,
             "over %d nodes MPI_%s of %llu %s takes by %s %s, in segments %s, by the library %s: "
             "%s",
             shape.nodes, mpi_name_of(tried.collective), static_cast<unsigned long long>(shown),
             in_kib ? "KiB" : "bytes", tried.ours, ours.text, segments.text, library.text,
             names[winner]);
}

void compare(Collective collective, uint64_t winner, MPI_Comm comm) noexcept {
    const uint64_t own[] = {winner, UINT64_MAX - winner};
    uint64_t most[2];
    real.Allreduce(own, most, 2, MPI_UINT64_T, MPI_MAX, comm);
    if (most[0] != UINT64_MAX - most[1]) choices_differ(collective);
}

// A handler of the program may have freed the communicator.
void end_turn_over_nodes(const TimedTurn& turn) noexcept {
    if (turn.epoch == private_comms_epoch())
        static_cast<TrialsOverNodes*>(turn.whose)->row_under_way().end_call_now(turn.begun_ns);
}

// As on a node (node/node_turns.cpp): the longer a call, the less its neighbours matter.
constexpr unsigned calls_in_row(const TriedCall& tried) noexcept { return tried.is_long ? 1 : 8; }

}  // namespace

FoundOverNodes found_over_nodes(const CommShape& shape) noexcept {
    const std::lock_guard lock(finding);
    const auto found = found_by_shape().find(shape);
    return found == found_by_shape().end() ? learned_before(shape) : found->second;
}

void append_learned_over_nodes(std::vector<base::LearnedRow>& rows) {
    const std::lock_guard lock(finding);
    for (const auto& [shape, found] : found_by_shape())
        if (shape.nodes > 1) append_learned(shape, found, learned_before(shape), rows);
}

TrialsOverNodes::TrialsOverNodes(const CommShape& shape, const FoundOverNodes& found) noexcept
    : shape_(shape) {
    for (size_t c = 0; c < collectives_over_nodes; ++c)
        for (size_t of = 0; of < classes_over_nodes; ++of)
            if (found[c][of] != Trial::open) trials_[c][of].trial.award(found[c][of]);
}

RowTrial& TrialsOverNodes::trial_of(Collective collective, uint64_t bytes) noexcept {
    return trials_[static_cast<size_t>(collective)][class_of(bytes)];
}

Server TrialsOverNodes::known(Collective collective, uint64_t bytes, Server otherwise) noexcept {
    const unsigned winner = trial_of(collective, bytes).trial.winner();
    return winner == Trial::open ? otherwise : static_cast<Server>(winner);
}

// One more call of the row.
ServedBy TrialsOverNodes::begin_turn() noexcept {
    last_.row.begin_call();
    return {
        static_cast<Server>(last_.row.candidate),
        {end_turn_over_nodes, this, monotonic_ns(), private_comms_epoch(), last_.tried.collective}};
}

ServedBy TrialsOverNodes::begin_call(const TriedCall& tried, MPI_Comm comm) noexcept {
    RowTrial& one = trial_of(tried.collective, tried.bytes);
    Trial& trial = one.trial;
    const auto winner = [&trial]() noexcept {
        return ServedBy{static_cast<Server>(trial.winner())};
    };
    // What an earlier job has found may not be allowed in this one.
    if (trial.winner() != Trial::open && (tried.candidates >> trial.winner() & 1) == 0)
        return {static_cast<Server>(std::countr_zero(tried.candidates))};
    const bool is_of_row = last_.trial == &one;
    if (is_of_row && !last_.row.is_check && !last_.row.is_full()) return begin_turn();
    if (is_of_row && last_.row.is_check) {
        bring_times_together(tried.call, comm);
        if (trial.winner() != Trial::open) return winner();
    }
    bool is_check = false;
    if (trial.winner() == Trial::open) {
        if (!trial.has_begun())
            trial.admit(tried.candidates,
                        tried.is_long ? Trial::Calls::are_long : Trial::Calls::are_short);
        if (trial.winner() != Trial::open) return winner();
    } else {
        if (!one.is_check_due()) return winner();
        is_check = !one.begin_rematch(tried.candidates);
    }
    bring_times_together(tried.call, comm);
    // The row before may have decided.
    if (!is_check && trial.winner() != Trial::open) return winner();
    last_ = {&one, tried, one.begin_row(is_check, calls_in_row(tried))};
    return begin_turn();
}

// Even of none: whoever waits for a rank that is late is not timed meanwhile.
void TrialsOverNodes::bring_times_together(Call call, MPI_Comm comm) noexcept {
    const TimedRow last = std::exchange(last_, {});
    const RowTimes own = last.row.times();
    RowTimes slowest;
    constexpr int words = sizeof slowest / sizeof(uint64_t);
    {
        const offload::DirectCall scope(call);
        real.Allreduce(&own, &slowest, words, MPI_UINT64_T, MPI_MAX, comm);
    }
    if (last.trial == nullptr) return;
    if (slowest.missing == 0) return judge(last, slowest, comm);
    constexpr unsigned most_unfinished = 64;
    if (!last.row.is_check && ++unfinished_ == most_unfinished)
        last.trial->trial.award(static_cast<unsigned>(std::countr_zero(last.tried.candidates)));
}

void TrialsOverNodes::judge(const TimedRow& timed, const RowTimes& slowest,
                            MPI_Comm comm) noexcept {
    const auto decision =
        timed.trial->end_row(timed.row, slowest, timed.tried.candidates, settings().trials);
    if (!decision) return;
    if (is_checked(settings().trials)) compare(timed.tried.collective, decision->winner, comm);
    if (!decision->is_new) return;
    remember(shape_, timed.tried, decision->winner);
    int rank = 0;
    real.Comm_rank(comm, &rank);
    if (rank == 0) show(shape_, timed.tried, decision->times, decision->winner);
}

}  // namespace vecmpi::pipeline
