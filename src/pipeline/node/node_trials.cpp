// SPDX-License-Identifier: BSD-3-Clause
// What trials have found is kept for communicators to come.
#include "node_trials.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "base/api.hpp"
#include "offload/api.hpp"

namespace vecmpi::pipeline::node {

namespace {

using base::Trial;

// By number of ranks: more of them share the memory, and what they wait for.
using FoundByRanks = std::map<int, FoundOnNode>;
std::mutex finding;
FoundByRanks& found_by_ranks() {
    static auto* const found = new FoundByRanks;  // outlives all callers
    return *found;
}

FoundOnNode nothing_found() noexcept {
    FoundOnNode found;
    for (auto& of_collective : found.transports) of_collective.fill(Trial::open);
    return found;
}

// The profile's three sizes, each of which stands for what lies between it and the next.
FoundOnNode measured_before(int ranks) noexcept {
    constexpr size_t measured_bytes[number_of_node_sizes] = {size_t{64} << 10, size_t{256} << 10,
                                                             size_t{1} << 20};
    FoundOnNode found = nothing_found();
    if (!offload::agreement().profile) return found;
    const bool may_be_library = settings().intranode == IntranodeMode::automatic;
    for (size_t c = 0; c < number_of_settable_collectives; ++c) {
        const TransportsBySize* const measured =
            process_profile().profile.transports_of(static_cast<Collective>(c), ranks);
        if (measured == nullptr) continue;
        for (size_t i = 0; i < measured->size(); ++i)
            for (unsigned of = size_class(measured_bytes[i]); of < size_classes; ++of)
                found.transports[c][of] = (*measured)[i] == Transport::library && !may_be_library
                                              ? uint8_t{Trial::open}
                                              : static_cast<uint8_t>((*measured)[i]);
    }
    return found;
}

// "4.21 us", or "-" where it was not tried.
struct ShownTime {
    explicit ShownTime(uint64_t ns) noexcept {
        if (ns == Trial::untried)
            std::snprintf(text, sizeof text, "-");
        else
            std::snprintf(text, sizeof text, "%.2f us", 1e-3 * static_cast<double>(ns));
    }
    char text[24];
};

}  // namespace

unsigned NodeTrial::rivals(unsigned candidates) const noexcept {
    constexpr uint64_t near = 2;
    const unsigned winner = trial.winner();
    const Trial::Times times = trial.least();
    if (times[winner] == Trial::untried || between_checks == most_between_checks) return candidates;
    unsigned rivals = 0;
    for (unsigned i = 0; i < Trial::most_candidates; ++i)
        if (times[i] / near <= times[winner]) rivals |= 1u << i;
    return rivals & candidates;
}

void NodeTrial::note_cold(TimeOfCall& call, unsigned calls) noexcept {
    constexpr uint64_t most_ns = 8'000'000;
    if (cold_ns >= most_ns)
        call.memory = Trial::Memory::warm;
    else
        cold_ns += call.ns * calls;
}

void NodeTrial::decided() noexcept {
    const auto winner = static_cast<uint8_t>(trial.winner());
    between_checks = winner == std::exchange(last_winner, winner)
                         ? std::min(4 * between_checks, most_between_checks)
                         : first_check;
    calls_to_check = between_checks;
}

bool NodeTrial::check(uint64_t ns) noexcept {
    constexpr uint64_t much_slower = 4;
    if (winner_ns == 0) winner_ns = ns;
    slow_checks = ns > much_slower * winner_ns ? slow_checks + 1 : 0;
    if (slow_checks < 2) return false;
    slow_checks = 0;
    winner_ns = 0;
    pace = Pace::unknown;
    trial.reopen();
    return true;
}

void NodeTrials::adopt(const FoundTransports& found) noexcept {
    for (size_t c = 0; c < number_of_collectives; ++c)
        for (size_t of = 0; of < size_classes; ++of)
            if (found[c][of] != Trial::open) trials_[c][of].trial.award(found[c][of]);
}

namespace {
// note(found): of communicators of so many ranks.
template <class Note>
void remember(int ranks, const Note& note) noexcept {
    const std::lock_guard lock(finding);
    try {
        const auto [found, is_new] = found_by_ranks().try_emplace(ranks);
        if (is_new) found->second = measured_before(ranks);
        note(found->second);
    } catch (const std::bad_alloc&) {
        // The next communicator tries again.
    }
}
}  // namespace

FoundOnNode found_on_node(int ranks) noexcept {
    const std::lock_guard lock(finding);
    const auto found = found_by_ranks().find(ranks);
    return found == found_by_ranks().end() ? measured_before(ranks) : found->second;
}

void remember_transport(int ranks, Collective collective, size_t bytes, unsigned winner) noexcept {
    remember(ranks, [=](FoundOnNode& found) noexcept {
        found.transports[static_cast<size_t>(collective)][size_class(bytes)] =
            static_cast<uint8_t>(winner);
    });
}

void remember_called_off(int ranks, Collective collective, unsigned turns) noexcept {
    remember(ranks, [=](FoundOnNode& found) noexcept {
        found.called_off[static_cast<size_t>(collective)] = static_cast<uint8_t>(turns);
    });
}

void show_trial(const ShownTrial& trial) noexcept {
    // In the order of enum Collective.
    constexpr const char* collectives[] = {"Allreduce",
                                           "Reduce",
                                           "Reduce_scatter",
                                           "Bcast",
                                           "Allgather",
                                           "Alltoall",
                                           "Barrier",
                                           "Scan",
                                           "Exscan",
                                           "Gather",
                                           "Scatter",
                                           "Allgatherv",
                                           "Gatherv",
                                           "Scatterv",
                                           "Alltoallv",
                                           "Alltoallw",
                                           "Neighbor_allgather",
                                           "Neighbor_allgatherv",
                                           "Neighbor_alltoall",
                                           "Neighbor_alltoallv",
                                           "Neighbor_alltoallw"};
    static_assert(std::size(collectives) == number_of_collectives);
    constexpr const char* transports[] = {"copy-in copy-out", "single copy", "the library"};
    const ShownTime two_copies(trial.times[0]), single_copy(trial.times[1]),
        library(trial.times[2]);
    const bool in_kib = trial.bytes >= 1024;
    log_line(LogLevel::info,
             "on this node MPI_%s of %zu %s takes by copy-in copy-out %s, by single copy %s, by "
             "the library %s: %s",
             collectives[static_cast<size_t>(trial.collective)],
             in_kib ? trial.bytes >> 10 : trial.bytes, in_kib ? "KiB" : "bytes", two_copies.text,
             single_copy.text, library.text, transports[trial.winner]);
}

}  // namespace vecmpi::pipeline::node
