// SPDX-License-Identifier: BSD-3-Clause
// Turns of a trial on one node: all ranks begin them together, are timed, and judge alike.
#include <algorithm>
#include <bit>
#include <cstring>

#include "node_comm.hpp"

namespace vecmpi::pipeline::node {

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

// All ranks wait here for each other, so that nobody is timed while he waits for who is late. A
// rank whose own call the library has refused may be in another call meanwhile. It says so, by its
// post or by its number of calls, and stays untried. Everybody finds the same, since a post stays
// until all have begun the next turn.
bool NodeComm::all_take_turn(uint64_t what) noexcept {
    const uint64_t number = ++turns_;
    Mailbox::TurnPost& own = mailbox(rank()).turns[number % 2];
    own.what.store(what, std::memory_order_relaxed);
    own.number.store(number, std::memory_order_release);
    say_that_call_began();
    doors_.ring_all();
    bool all_same = true;
    for (const MailboxOfRank& one : mailboxes_) {
        const Mailbox::TurnPost& post = one.mailbox->turns[number % 2];
        bool posted = false;
        offload::wait_for_memory([&]() noexcept {
            const bool is_elsewhere = one.mailbox->calls.load(std::memory_order_acquire) >= calls_;
            posted = post.number.load(std::memory_order_acquire) >= number;
            return posted || is_elsewhere;
        });
        all_same = all_same && posted && post.what.load(std::memory_order_relaxed) == what;
    }
    return all_same;
}

NodeCall NodeComm::begin_turn(StagedCollectives* staged, Collective collective,
                              size_t bytes) noexcept {
    base::Trial& trial = trials_.of(collective, bytes).trial;
    const unsigned candidates = candidates_for(collective, bytes);
    const bool is_check = trial.winner() != base::Trial::open;
    if (is_check) next_check_ = calls_ + calls_between_checks;
    if (!is_check && !trial.has_begun()) trial.admit(candidates);
    if (std::has_single_bit(candidates) || no_trials_) {
        say_that_call_began();
        return call_by(trial.winner() != base::Trial::open ? trial.winner() : 0, staged);
    }
    const unsigned candidate = is_check ? trial.winner() : trial.next();
    const uint64_t what = calls_ << 20 | static_cast<uint64_t>(collective) << 12 |
                          uint64_t{size_class(bytes)} << 4 | candidate;
    if (!all_take_turn(what)) {
        no_trials_ = true;
        return call_by(is_check ? candidate : 0, staged);
    }
    const TimedTurn turn{
        this, bytes, monotonic_ns(), collective, static_cast<uint8_t>(candidate), is_check};
    if (static_cast<Transport>(candidate) == Transport::library) {
        librarys_turn = turn;
        return call_by(candidate, staged);
    }
    return {this, staged, static_cast<Transport>(candidate), Turn(turn)};
}

base::Trial::Times NodeComm::slowest(const base::Trial::Times& own) noexcept {
    base::Trial::Times times = own;
    kernels::Line value;
    unsigned char* const data = data_of(value, sizeof times);
    static_assert(sizeof times <= kernels::line_data_bytes);
    const auto read = [](const kernels::Line& line) noexcept {
        base::Trial::Times of;
        std::memcpy(&of, data_of(line, sizeof of), sizeof of);
        return of;
    };
    std::memcpy(data, &times, sizeof times);
    allreduce(
        value, sizeof times,
        [&](const kernels::Line& left, const kernels::Line& right, kernels::Line& into) noexcept {
            const base::Trial::Times a = read(left), b = read(right);
            for (size_t i = 0; i < times.size(); ++i) times[i] = std::max(a[i], b[i]);
            std::memcpy(data_of(into, sizeof times), &times, sizeof times);
        });
    return read(value);
}

void NodeComm::end_turn(const TimedTurn& turn) noexcept {
    const uint64_t ns = monotonic_ns() - turn.begun_ns;
    NodeTrial& one = trials_.of(turn.collective, turn.bytes);
    if (turn.is_check) {
        base::Trial::Times own;
        own.fill(ns);
        count(Counter::trials_again, one.check(slowest(own)[0]));
        return;
    }
    if (!one.trial.note(turn.candidate, ns)) return;
    const base::Trial::Times times = slowest(one.trial.least());
    constexpr size_t long_bytes = size_t{1} << 20;
    one.trial.judge(times, turn.bytes < long_bytes ? base::Trial::Calls::are_short
                                                   : base::Trial::Calls::are_long);
    const unsigned winner = one.trial.winner();
    if (winner == base::Trial::open) return;
    one.winner_ns = times[winner];
    count(Counter::trials);
    count(Counter::trials_cost_ns, one.trial.cost(times));
    remember_transport(ranks(), turn.collective, turn.bytes, winner);
    if (rank() == 0) show_trial({turn.collective, turn.bytes, times, winner});
}

thread_local constinit TimedTurn librarys_turn __attribute__((tls_model("initial-exec")));

void end_turn(const TimedTurn& turn) noexcept { turn.node->end_turn(turn); }

}  // namespace vecmpi::pipeline::node
