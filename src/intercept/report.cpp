// SPDX-License-Identifier: BSD-3-Clause
// Sums the counters of all ranks with the library's Ireduce, waiting on our ladder, and writes the
// report on rank 0. What MPI_Pcontrol says to it.
#include "report.hpp"

#include <cstdio>
#include <memory>
#include <string>

#include "base/api/profile.hpp"
#include "datatype/api.hpp"
#include "offload/api.hpp"

namespace vecmpi::intercept {

namespace {

struct PendingReduce {
    MPI_Request request;
};

bool look_at_reduce(void* context) noexcept {
    int done = 0;
    real.Test(&static_cast<PendingReduce*>(context)->request, &done, MPI_STATUS_IGNORE);
    return done != 0;
}

void reduce_over_world(const void* mine, void* result, int count, MPI_Datatype type, MPI_Op op) {
    PendingReduce pending{MPI_REQUEST_NULL};
    {
        offload::DirectCall scope(Call::Ireduce);
        real.Ireduce(mine, result, count, type, op, 0, MPI_COMM_WORLD, &pending.request);
    }
    offload::wait_until(look_at_reduce, &pending);
}

std::vector<uint64_t> reduce_over_world(const std::vector<uint64_t>& mine, MPI_Op op) {
    std::vector<uint64_t> result(mine.size());
    reduce_over_world(mine.data(), result.data(), static_cast<int>(mine.size()), MPI_UINT64_T, op);
    return result;
}

// An MPI_User_function.
void add_uses(void* in, void* inout, int* number, MPI_Datatype*) noexcept {
    for (int i = 0; i < *number; ++i)
        add_datatype_uses(static_cast<const DatatypeUses*>(in)[i],
                          static_cast<DatatypeUses*>(inout)[i]);
}

// Rows are the same by their texts, so an op of ours adds them up: as many bytes in each of the
// library's messages, however many ranks there are.
std::vector<DatatypeUse> reduce_datatypes() {
    const auto mine = std::make_unique<DatatypeUses>(), all = std::make_unique<DatatypeUses>();
    read_datatype_rows(*mine);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Op op = MPI_OP_NULL;
    {
        const offload::DirectCall scope(Call::Op_create);
        real.Type_contiguous(static_cast<int>(sizeof(DatatypeUses)), MPI_BYTE, &type);
        real.Type_commit(&type);
        real.Op_create(add_uses, 1, &op);
    }
    reduce_over_world(mine.get(), all.get(), 1, type, op);
    const offload::DirectCall scope(Call::Op_free);
    real.Op_free(&op);
    real.Type_free(&type);
    return {all->rows, all->rows + all->number};
}

// As MPI_Init left it: the report comes when the engine has been stopped.
struct AtStart {
    bool has_thread = false, one_node = false, is_crowded = false;
};
AtStart at_start;

// The first rank of its node? Collective over MPI_COMM_WORLD.
bool leads_node() {
    MPI_Comm node = MPI_COMM_NULL;
    int rank = 0;
    const offload::DirectCall scope(Call::Comm_split_type);
    real.Comm_rank(MPI_COMM_WORLD, &rank);
    if (at_start.one_node) return rank == 0;
    if (real.Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node) !=
        MPI_SUCCESS)
        return false;
    real.Comm_rank(node, &rank);
    real.Comm_free(&node);
    return rank == 0;
}

// False where it cannot be written, which is said.
bool write_file(const std::string& name, const std::string& text) {
    std::FILE* file = std::fopen(name.c_str(), "w");
    bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file && std::fclose(file) != 0) written = false;
    if (!written)
        log_line(LogLevel::error, "VECMPI_REPORT=json:%s: the file cannot be written",
                 name.c_str());
    return written;
}

void write_report(ReportFacts& facts, const ReportNumbers& numbers) {
    const ReportTarget& target = settings().report;
    if (!target.file.empty() && write_file(target.file, format_json(facts, numbers)))
        facts.file = target.file;
    if (!target.has_summary()) return;
    const std::string text = format_summary(facts, numbers);
    std::fwrite(text.data(), 1, text.size(), stderr);
}

// Off the end of the totals: one for each rank of which it is true.
int take_last(std::vector<uint64_t>& totals) {
    const uint64_t number = totals.back();
    totals.pop_back();
    return static_cast<int>(number);
}

// Collective over MPI_COMM_WORLD.
void print_report() noexcept {
    ReportFacts facts;
    int rank = 0;
    real.Comm_rank(MPI_COMM_WORLD, &rank);
    real.Comm_size(MPI_COMM_WORLD, &facts.ranks);
    std::vector<uint64_t> mine = counter_snapshot();
    mine.push_back(at_start.is_crowded);
    mine.push_back(at_start.has_thread);
    mine.push_back(leads_node());
    ReportNumbers numbers{reduce_over_world(mine, MPI_SUM), reduce_over_world(mine, MPI_MAX),
                          reduce_datatypes()};
    if (rank != 0) return;
    facts.nodes = take_last(numbers.totals);
    facts.ranks_with_thread = take_last(numbers.totals);
    facts.crowded_ranks = take_last(numbers.totals);
    facts.mpi_library = library::library_version();
    for (size_t call = 0; call < library::number_of_calls; ++call)
        facts.call_names.push_back(library::call_name(static_cast<Call>(call)));
    facts.notes.push_back("of the library's inside, on rank 0: " + library::describe_traits());
    facts.notes.push_back("offload thread of rank 0 " + offload::engine_reason());
    facts.waits_rest =
        library::has_trait(library::Trait::polls) && settings().wait != WaitMode::spin;
    facts.network_is_known = settings().network != NetworkSetting{};
    if (const LoadedProfile& profile = process_profile(); !profile.file.empty()) {
        facts.has_profile = true;
        facts.notes.push_back("profile of rank 0 " + profile.file);
    }
    write_report(facts, numbers);
}

int report_in_finalize(MPI_Comm, int, void*, void*) {
    print_report();
    return MPI_SUCCESS;
}

}  // namespace

// MPI 4.0, 14.2.4. Other levels are other tools'.
void obey_pcontrol(int level) noexcept {
    if (level < 0 || level > 2) return;
    count_for_report(level != 0);
    if (level == 2) empty_report();
}

void expect_report() noexcept {
    if (!report_is_wanted() || !offload::agreement().valid) return;
    at_start = {offload::engine_has_thread(), offload::agreement().one_node,
                offload::node_is_crowded()};
    datatype::report_types(true);
    offload::call_last_in_finalize(report_in_finalize);
}

}  // namespace vecmpi::intercept
