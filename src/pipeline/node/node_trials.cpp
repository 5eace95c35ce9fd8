// SPDX-License-Identifier: BSD-3-Clause
// What trials have found is kept for communicators to come.
#include "node_trials.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "base/api.hpp"
#include "offload/api.hpp"
#include "pipeline/learned.hpp"
#include "pipeline/node/api.hpp"

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
void adopt_measured(int ranks, FoundTransports& found) noexcept {
    constexpr size_t measured_bytes[number_of_node_sizes] = {size_t{64} << 10, size_t{256} << 10,
                                                             size_t{1} << 20};
    for (size_t c = 0; c < number_of_settable_collectives; ++c) {
        const TransportsBySize* const measured =
            process_profile().profile.transports_of(static_cast<Collective>(c), ranks);
        if (measured == nullptr) continue;
        for (size_t i = 0; i < measured->size(); ++i)
            for (unsigned of = size_class(measured_bytes[i]); of < size_classes; ++of)
                found[c][of] = static_cast<uint8_t>((*measured)[i]);
    }
}

base::CommShape shape_on_node(int ranks) noexcept { return {ranks, 1, 0}; }

// By vecmpi-tune, and by earlier jobs, which saw more sizes.
FoundOnNode measured_before(int ranks) noexcept {
    FoundOnNode found = nothing_found();
    if (!offload::agreement().profile) return found;
    adopt_measured(ranks, found.transports);
    adopt_learned(shape_on_node(ranks), found.transports);
    // Settings win.
    const auto forget = [&found](Transport transport) noexcept {
        for (auto& of_collective : found.transports)
            std::replace(of_collective.begin(), of_collective.end(),
                         static_cast<uint8_t>(transport), uint8_t{Trial::open});
    };
    if (settings().intranode != IntranodeMode::automatic) forget(Transport::library);
    if (settings().single_copy != 0) {
        forget(Transport::copy_in_copy_out);
        forget(Transport::single_copy);
    }
    return found;
}

}  // namespace

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

void append_learned_on_node(std::vector<base::LearnedRow>& rows) {
    const std::lock_guard lock(finding);
    for (const auto& [ranks, found] : found_by_ranks())
        append_learned(shape_on_node(ranks), found.transports, measured_before(ranks).transports,
                       rows);
}

void show_trial(const ShownTrial& trial) noexcept {
    constexpr const char* transports[] = {"copy-in copy-out", "single copy", "the library"};
    const ShownTime two_copies(trial.times[0]), single_copy(trial.times[1]),
        library(trial.times[2]);
    const bool in_kib = trial.bytes >= 1024;
    log_line(LogLevel::info,
             "on this node MPI_%s of %zu %s takes by copy-in copy-out %s, by single copy %s, by "
             "the library %s: %s",
             mpi_name_of(trial.collective), in_kib ? trial.bytes >> 10 : trial.bytes,
             in_kib ? "KiB" : "bytes", two_copies.text, single_copy.text, library.text,
             transports[trial.winner]);
}

}  // namespace vecmpi::pipeline::node
