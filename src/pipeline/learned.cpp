// SPDX-License-Identifier: BSD-3-Clause
// At the end of a job: what its trials have found is written to the host's profile.
#include "learned.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <string_view>

#include "kernels/api.hpp"
#include "library/api/real.hpp"
#include "pipeline/api.hpp"
#include "pipeline/node/api.hpp"
#include "trials_over_nodes.hpp"

namespace vecmpi::pipeline {

namespace {

// Not one that has nothing to do with who is the fastest. Null: all others are what they are by
// default. Chance, or a setting, may have kept the fastest candidate out.
const char* setting_in_the_way() {
    constexpr std::string_view harmless[] = {"VECMPI",     "VECMPI_OFFLOAD", "VECMPI_CPU",
                                             "VECMPI_LOG", "VECMPI_PROFILE", "VECMPI_REPORT"};
    const std::vector<SettingText>& texts = setting_texts();
    for (size_t i = 0; i < texts.size(); ++i) {
        const std::string_view name = texts[i].name, value = process_settings().values[i];
        const bool is_default = value == texts[i].default_value ||
                                (name == "VECMPI_TRIALS" && settings().trials == TrialMode::check);
        if (!is_default &&
            std::find(std::begin(harmless), std::end(harmless), name) == std::end(harmless))
            return texts[i].name;
    }
    return nullptr;
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
                 written.file.empty() ? "of this host" : written.file.c_str(),
                 written.problem.c_str());
}

}  // namespace

void keep_what_was_learned() noexcept {
    int rank = 0;
    if (settings().profile.kind != ProfileChoice::Kind::learn ||
        real.Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || rank != 0)
        return;
    try {
        if (const char* const name = setting_in_the_way()) {
            log_line(LogLevel::info, "nothing is learned: %s is set", name);
            return;
        }
        std::vector<base::LearnedRow> rows;
        node::append_learned_on_node(rows);
        append_learned_over_nodes(rows);
        if (!rows.empty()) write(rows);
    } catch (const std::bad_alloc&) {
        // The next job learns it again.
    }
}

}  // namespace vecmpi::pipeline
