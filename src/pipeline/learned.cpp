// SPDX-License-Identifier: BSD-3-Clause
// At the end of a job: what its trials have found is written to the host's profile.
#include "learned.hpp"

#include <new>

#include "kernels/api.hpp"
#include "library/api/real.hpp"
#include "pipeline/api.hpp"
#include "pipeline/node/api.hpp"
#include "trials_over_nodes.hpp"

namespace vecmpi::pipeline {

namespace {

// Chance or a setting may have kept the fastest candidate out.
bool is_worth_keeping(const Settings& set) noexcept {
    return (set.trials == TrialMode::automatic || set.trials == TrialMode::check) &&
           set.intranode == IntranodeMode::automatic && set.single_copy == 0;
}

void write(const std::vector<base::LearnedRow>& rows) {
    size_t winners = 0;
    for (const base::LearnedRow& row : rows) winners += row.winners.size();
    const base::LearnedProfile written = base::write_learned(
        settings().profile, rows, kernels::isa_name(kernels::best_isa()), library::library_version);
    if (written.problem.empty())
        log_line(LogLevel::info, "profile %s: %zu winners of trials added", written.file.c_str(),
                 winners);
    else
        log_line(LogLevel::warn, "profile %s: what was learned is not written: %s",
                 written.file.c_str(), written.problem.c_str());
}

}  // namespace

void keep_what_was_learned() noexcept {
    int rank = 0;
    if (settings().profile.kind != ProfileChoice::Kind::learn || !is_worth_keeping(settings()) ||
        real.Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || rank != 0)
        return;
    try {
        std::vector<base::LearnedRow> rows;
        node::append_learned_on_node(rows);
        append_learned_over_nodes(rows);
        if (!rows.empty()) write(rows);
    } catch (const std::bad_alloc&) {
        // The next job learns it again.
    }
}

}  // namespace vecmpi::pipeline
