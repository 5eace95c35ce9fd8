// SPDX-License-Identifier: BSD-3-Clause
// Turns of a trial on one node: all ranks begin them together, are timed, and judge alike.
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "node_comm.hpp"

namespace vecmpi::pipeline::node {

namespace {

uint64_t faults_of_thread() noexcept {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return static_cast<uint64_t>(usage.ru_minflt);
}

// Page faults took a tenth of the time or more. A library's shared memory is touched page by page
// in its first calls, which may take ten times as long as later ones.
base::Trial::Memory memory_of(uint64_t faults, uint64_t ns) noexcept {
    constexpr uint64_t fault_ns = 1000, share = 10;  // 0.5 to 4 us were seen
    return faults * fault_ns * share > ns ? base::Trial::Memory::cold : base::Trial::Memory::warm;
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
bool NodeComm::all_take_turn(uint32_t what) noexcept {
    constexpr uint64_t longest_wait_ns = 1'000'000'000;
    constexpr unsigned most_called_off = 3;
    const auto number = static_cast<uint16_t>(++turns_);
    const auto all = static_cast<unsigned>(ranks());
    TurnBoard& board = mailbox(0).turns;
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
    no_trials_ = ++called_off_ >= most_called_off;
    return false;
}

NodeCall NodeComm::begin_turn(StagedCollectives* staged, Collective collective,
                              size_t bytes) noexcept {
    constexpr size_t long_bytes = size_t{1} << 20;
    base::Trial& trial = trials_.of(collective, bytes).trial;
    const unsigned candidates = candidates_for(collective, bytes);
    const bool is_check = trial.winner() != base::Trial::open;
    if (is_check) next_check_ = calls_ + calls_between_checks;
    if (!is_check && !trial.has_begun())
        trial.admit(candidates, bytes < long_bytes ? base::Trial::calls_in_a_row
                                                   : base::Trial::long_calls_in_a_row);
    if (std::has_single_bit(candidates) || no_trials_)
        return call_by(trial.winner() != base::Trial::open ? trial.winner() : 0, staged);
    const unsigned candidate = is_check ? trial.winner() : trial.next();
    const auto what =
        static_cast<uint32_t>((calls_ & UINT16_MAX) << 12 | static_cast<unsigned>(collective) << 7 |
                              size_class(bytes) << 2 | candidate);
    static_assert(number_of_collectives <= 1 << 5 && size_classes <= 1 << 5 &&
                  base::Trial::most_candidates <= 1 << 2);
    if (!all_take_turn(what)) return call_by(is_check ? candidate : 0, staged);
    const TimedTurn turn{this,           bytes,
                         monotonic_ns(), faults_of_thread(),
                         collective,     static_cast<uint8_t>(candidate),
                         is_check};
    if (static_cast<Transport>(candidate) == Transport::library) {
        librarys_turn = turn;
        return call_by(candidate, staged);
    }
    return {this, staged, static_cast<Transport>(candidate), Turn(turn)};
}

NodeComm::TurnTime NodeComm::slowest(const TurnTime& own) noexcept {
    TurnTime slowest = own;
    kernels::Line value;
    constexpr size_t bytes = sizeof slowest;
    static_assert(bytes <= kernels::line_data_bytes);
    const auto read = [](const kernels::Line& line) noexcept {
        TurnTime of;
        std::memcpy(&of, data_of(line, bytes), bytes);
        return of;
    };
    std::memcpy(data_of(value, bytes), &slowest, bytes);
    allreduce(
        value, bytes,
        [&](const kernels::Line& left, const kernels::Line& right, kernels::Line& into) noexcept {
            const TurnTime a = read(left), b = read(right);
            slowest = {std::max(a.ns, b.ns), std::max(a.is_cold, b.is_cold)};
            std::memcpy(data_of(into, bytes), &slowest, bytes);
        });
    return read(value);
}

void NodeComm::end_turn(const TimedTurn& turn) noexcept {
    const uint64_t own_ns = monotonic_ns() - turn.begun_ns;
    const auto memory = memory_of(faults_of_thread() - turn.faults_before, own_ns);
    const auto [ns, is_cold] = slowest({own_ns, memory == base::Trial::Memory::cold});
    NodeTrial& one = trials_.of(turn.collective, turn.bytes);
    if (turn.is_check) {
        count(Counter::trials_again, one.check(ns));
        return;
    }
    if (!one.trial.note(turn.candidate, ns,
                        is_cold != 0 ? base::Trial::Memory::cold : base::Trial::Memory::warm))
        return;
    const base::Trial::Times times = one.trial.least();
    one.trial.judge(times);
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
