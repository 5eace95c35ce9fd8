// SPDX-License-Identifier: BSD-3-Clause
#include "message_rules.hpp"

#include "offload/api.hpp"
#include "plans_by_handle.hpp"
#include "type_rows.hpp"

namespace vecmpi::datatype {

namespace {

constexpr MPI_Count sent_on_node = 8000, sent_over_network = 1024;

bool is_on_node(MPI_Comm comm) noexcept {
    const auto& agreed = offload::agreement();
    return agreed.valid && agreed.one_node && offload::comm_traits(comm).world_only;
}

}  // namespace

bool ucx_packs(MPI_Comm comm) noexcept {
    return ucx_packs_some() && !(library_packs_some() && is_on_node(comm));
}

MPI_Count most_sent_as_bytes(MPI_Comm comm) noexcept {
    return is_on_node(comm) ? sent_on_node : sent_over_network;
}

bool is_refused(const void* memory, MPI_Datatype type, const KeptPlan* kept) noexcept {
    if (memory != nullptr) return false;
    return kept != nullptr ? kept->plan.lowest() == 0 : offload::is_null_refused(type);
}

std::optional<Trial::Times> times_of_plan_that_wins(const KeptPlan& kept,
                                                    kernels::Direction direction, MPI_Count bytes,
                                                    MPI_Comm comm) noexcept {
    const Trial& trial = kept.trial(PackedIn::call, direction, bytes);
    const auto library = static_cast<size_t>(Packer::library);
    const bool is_awarded = trial.least()[library] == Trial::untried;
    if (is_awarded && has_won(trial, Packer::library)) return std::nullopt;  // it has no gaps
    if (bytes > sent_on_node && is_on_node(comm))
        return in_pieces_of(trial.least(), kept.mean_block_bytes);
    if (!has_won(trial, Packer::plan)) return std::nullopt;
    return trial.least();
}

bool is_settled(const KeptPlan* kept, PackedIn way, kernels::Direction direction, MPI_Count bytes,
                MPI_Datatype type) noexcept {
    if (kept == nullptr) return !is_counted(type);
    return kept->proof.load(std::memory_order_relaxed) != KeptPlan::Proof::open &&
           kept->trial(way, direction, bytes).winner() != Trial::open;
}

void count_left(const KeptPlan* kept, kernels::Direction direction, MPI_Count bytes,
                MPI_Datatype type) noexcept {
    const RowNumber row = row_of(type);
    if (row == no_row || bytes <= 0) return;
    WhyLibrary why = is_counted(type) ? WhyLibrary::too_little : verdict_of(type);
    if (kept != nullptr) {
        const Trial& trial = kept->trial(PackedIn::call, direction, bytes);
        why = has_won(trial, Packer::library) ? WhyLibrary::slower : WhyLibrary::not_served;
    }
    count_by_library(row, static_cast<uint64_t>(bytes), why);
}

}  // namespace vecmpi::datatype
