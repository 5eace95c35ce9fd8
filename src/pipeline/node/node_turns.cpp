// SPDX-License-Identifier: BSD-3-Clause
// Turns of a trial on one node: all ranks begin them together, are timed, and judge alike.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "node_site.hpp"

namespace vecmpi::pipeline::node {

namespace {

// A handler of the program may have freed the communicator.
void end_turn_of_node(const TimedTurn& turn) noexcept {
    if (turn.epoch == node_sites_epoch()) static_cast<NodeComm*>(turn.whose)->end_turn(turn);
}

// The first calls after another candidate's find the caches full of that one's data and code. The
// longer a call, the less that matters, and the more a slow candidate costs.
constexpr unsigned calls_in_row(size_t bytes) noexcept {
    if (bytes < size_t{64} << 10) return 8;
    return bytes < long_bytes ? 4 : bytes < 8 * long_bytes ? 2 : 1;
}

}  // namespace

// Bits by transport. Where VECMPI_SINGLE_COPY is a size, only the library is tried beside it.
unsigned NodeComm::candidates_for(Collective collective, size_t bytes) const noexcept {
    constexpr auto bit = [](Transport one) { return 1u << static_cast<unsigned>(one); };
    const size_t from = settings().single_copy;
    const bool is_set = from != 0 && from != SIZE_MAX;
    const bool has_way = collective != Collective::reduce && collective != Collective::barrier &&
                         collective != Collective::scan && collective != Collective::exscan;
    const bool may_read = has_way && staged_ && staged_->allows_single_copy();
    unsigned candidates = bit(Transport::copy_in_copy_out);
    if (is_set && may_read && bytes >= from)
        candidates = bit(Transport::single_copy);
    else if (!is_set && may_read && bytes >= worth_a_system_call)
        candidates |= bit(Transport::single_copy);
    if (settings().intranode == IntranodeMode::automatic) candidates |= bit(Transport::library);
    return candidates;
}

// All ranks wait here for each other, so that nobody is timed while he waits for who is late. False
// on all of them where one did not come: its own call was refused by the library, or it sends
// something first that another rank awaits before it comes here.
bool NodeComm::all_take_turn(Collective collective, unsigned what) noexcept {
    constexpr uint64_t longest_wait_ns = 250'000'000;
    Trials& trials = turns_[static_cast<size_t>(collective)];
    const auto number = static_cast<uint16_t>(++trials.turns);
    const auto all = static_cast<unsigned>(ranks());
    TurnBoard& board = mailbox(0).turns[static_cast<size_t>(collective)];
    Meeting meeting = board.arrive(number, what, all);
    if (meeting != Meeting::open) doors_.ring_all();
    const uint64_t begun_ns = monotonic_ns();
    offload::wait_for_memory([&]() noexcept {
        if (meeting == Meeting::open) meeting = board.look(number, all);
        if (meeting == Meeting::open && monotonic_ns() - begun_ns > longest_wait_ns)
            meeting = board.call_off(number, all);
        return meeting != Meeting::open;
    });
    if (meeting == Meeting::complete) return true;
    remember_called_off(ranks(), collective, ++trials.called_off);
    return false;
}

// A turn called off takes a quarter of a second. Where that was so on another communicator, one
// more ends the trials.
void NodeComm::adopt(const FoundOnNode& found) noexcept {
    trials_.adopt(found.transports);
    for (size_t c = 0; c < number_of_collectives; ++c)
        turns_[c].called_off = std::min<unsigned>(found.called_off[c], Trials::most_called_off - 1);
}

// Ranks meet before the first call of a row only, and bring the times of the row before together.
// False: that one shows nothing, and there is none for this call.
bool NodeComm::meet(Collective collective, size_t bytes) noexcept {
    if (all_take_turn(collective, size_class(bytes))) {
        end_row(collective);
        return true;
    }
    turns_[static_cast<size_t>(collective)].row = {};
    return false;
}

// What a call takes that is not tried, and not decided.
unsigned NodeComm::default_of(const RowTrial& one, unsigned candidates) noexcept {
    if (one.trial.winner() != base::Trial::open) return one.trial.winner();
    return one.last_winner != base::Trial::open
               ? one.last_winner
               : static_cast<unsigned>(std::countr_zero(candidates));
}

namespace {
// Where all ranks give and take at a time memory is what limits them: the copy in between costs
// most.
constexpr bool is_likely_read(Collective collective, size_t bytes) noexcept {
    constexpr size_t from = size_t{4} << 20;
    return bytes >= from &&
           (collective == Collective::allgather || collective == Collective::allgatherv ||
            collective == Collective::alltoall);
}
}  // namespace

Transport NodeComm::likely_transport(Collective collective, size_t bytes) noexcept {
    const RowTrial& one = trials_.of(collective, bytes);
    const unsigned candidates = candidates_for(collective, bytes);
    constexpr auto single_copy = static_cast<unsigned>(Transport::single_copy);
    const bool is_known =
        one.trial.winner() != base::Trial::open || one.last_winner != base::Trial::open;
    if (!is_known && is_likely_read(collective, bytes) && (candidates >> single_copy & 1) != 0)
        return Transport::single_copy;
    return static_cast<Transport>(default_of(one, candidates));
}

NodeCall NodeComm::begin_turn(StagedCollectives* staged, Collective collective,
                              size_t bytes) noexcept {
    Trials& trials = turns_[static_cast<size_t>(collective)];
    RowTrial& one = trials_.of(collective, bytes);
    base::Trial& trial = one.trial;
    TurnRow& row = trials.row;
    const unsigned candidates = candidates_for(collective, bytes);
    const bool is_tried = !std::has_single_bit(candidates) && !trials.have_ended() &&
                          settings().trials != TrialMode::off;
    const bool is_of_row = row.begun != 0 && size_class(trials.row_bytes) == size_class(bytes);
    if (trial.winner() != base::Trial::open) {
        const bool meets_rivals = one.begin_rematch(is_tried ? candidates : 0);
        // The next call shows what this one took.
        if (!meets_rivals && is_tried && !(is_of_row && row.is_check)) one.calls_to_check = 1;
    } else if (!trial.has_begun()) {
        using base::Trial;
        if (bytes < long_bytes)
            trial.admit(candidates, Trial::Calls::are_short);
        else
            trial.admit(candidates, Trial::Calls::are_long, Trial::Begins::last);
    }
    if (!is_tried) return call_by(default_of(one, candidates), staged);
    const bool is_check = trial.winner() != base::Trial::open;
    const bool ends_check = is_check && is_of_row && row.is_check;
    const bool goes_on = !is_check && is_of_row && !row.is_check && !row.is_full();
    if (!goes_on) {
        const bool have_met = meet(collective, bytes);
        // The row before may have decided, or have shown that all must begin anew.
        const bool is_decided = trial.winner() != base::Trial::open;
        if (!have_met || ends_check || is_check != is_decided)
            return call_by(default_of(one, candidates), staged);
        row = one.begin_row(is_check, calls_in_row(bytes));
        trials.row_bytes = bytes;
    }
    row.begin_call();
    const TimedTurn turn{end_turn_of_node, this, monotonic_ns(), node_sites_epoch(), collective};
    const auto by = static_cast<Transport>(row.candidate);
    if (by == Transport::library) {
        turn_of_others = turn;
        return call_by(row.candidate, staged);
    }
    return {this, staged, by, Turn(turn)};
}

RowTimes NodeComm::slowest_of_all(const RowTimes& own) noexcept {
    kernels::Line value;
    constexpr size_t bytes = sizeof own;
    static_assert(bytes <= kernels::line_data_bytes);
    const auto read = [](const kernels::Line& line) noexcept {
        RowTimes of;
        std::memcpy(&of, data_of(line, bytes), bytes);
        return of;
    };
    std::memcpy(data_of(value, bytes), &own, bytes);
    allreduce(
        value, bytes,
        [&](const kernels::Line& left, const kernels::Line& right, kernels::Line& into) noexcept {
            const RowTimes both = slowest(read(left), read(right));
            std::memcpy(data_of(into, bytes), &both, bytes);
        });
    return read(value);
}

void NodeComm::end_row(Collective collective) noexcept {
    Trials& trials = turns_[static_cast<size_t>(collective)];
    const TurnRow row = std::exchange(trials.row, {});
    const RowTimes all =
        slowest_of_all(row.times());  // even of none: the board's next turn is free
    if (row.begun == 0) return;
    if (all.missing != 0) {
        ++trials.unfinished;
        return;
    }
    const size_t bytes = trials.row_bytes;
    RowTrial& one = trials_.of(collective, bytes);
    const auto decision =
        one.end_row(row, all, candidates_for(collective, bytes), settings().trials);
    if (!decision) return;
    if (is_checked(settings().trials)) compare_choice(collective, decision->winner);
    if (!decision->is_new) return;
    remember_transport(ranks(), collective, bytes, decision->winner);
    if (rank() == 0) show_trial({collective, bytes, decision->times, decision->winner});
}

// For who looks for an error of ours.
void NodeComm::compare_choice(Collective collective, unsigned winner) noexcept {
    RowTimes own{};
    own.first_ns = winner;
    own.second_ns = UINT64_MAX - winner;
    const RowTimes most = slowest_of_all(own);
    if (most.first_ns != UINT64_MAX - most.second_ns) choices_differ(collective);
}

// Tells nobody: an error handler may have left the call before.
void NodeComm::end_turn(const TimedTurn& turn) noexcept {
    turns_[static_cast<size_t>(turn.collective)].row.end_call_now(turn.begun_ns);
}

}  // namespace vecmpi::pipeline::node
