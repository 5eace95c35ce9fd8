// SPDX-License-Identifier: BSD-3-Clause
// The table of conditions of a run and what helps there.
#include "report_advice.hpp"

#include <algorithm>

#include "counter_snapshot.hpp"
#include "report_words.hpp"

namespace vecmpi::base {
namespace {

struct Evidence {
    const ReportFacts& facts;
    const ReportNumbers& numbers;

    uint64_t run_ns() const noexcept { return value_at(numbers.totals, run_time_index); }
    uint64_t mpi_ns() const noexcept { return value_at(numbers.totals, mpi_time_index); }
    uint64_t times(Counter counter) const noexcept {
        return value_at(numbers.totals, event_index(counter));
    }
    // Where little time goes into MPI, nothing about it is worth a change.
    bool is_worth_it(double least_share) const noexcept {
        return run_ns() != 0 && share_of(mpi_ns(), run_ns()) >= least_share;
    }
};

constexpr double little = 0.05;  // of the run: no advice below that
constexpr double much = 0.1;

uint64_t time_of_calls(const Evidence& run, bool (*matches)(std::string_view name)) {
    uint64_t ns = 0;
    for (size_t call = 0; call < run.facts.call_names.size(); ++call) {
        const char* const name = run.facts.call_names[call];
        if (name == nullptr || !matches(name)) continue;
        for (size_t path = 0; path < number_of_paths; ++path)
            ns += value_at(run.numbers.totals, time_index(call, static_cast<Path>(path)));
    }
    return ns;
}

bool waits_for_requests(std::string_view name) {
    return name.starts_with("MPI_Wait") || name.starts_with("MPI_Test");
}

// ---- conditions: what to do, or nothing where it does not hold ---------------------------------

std::string too_many_ranks(const Evidence& run) {
    if (run.facts.crowded_ranks == 0) return {};
    return "more ranks and threads than CPUs, as seen by " +
           counted(static_cast<uint64_t>(run.facts.crowded_ranks), "rank") +
           ": start fewer ranks, or set OMP_NUM_THREADS=1";
}

std::string uneven_load(const Evidence& run) {
    const uint64_t ranks = static_cast<uint64_t>(std::max(run.facts.ranks, 1));
    const uint64_t mean = run.mpi_ns() / ranks,
                   largest = value_at(run.numbers.largest, mpi_time_index);
    const uint64_t mean_run = run.run_ns() / ranks;
    constexpr double factor = 1.5;
    if (ranks < 2 || share_of(largest, mean) < factor || share_of(largest - mean, mean_run) < much)
        return {};
    return "one rank is in MPI calls for " + format_time(largest) + ", the mean is " +
           format_time(mean) + ": it waits for the others, so spread the work evenly";
}

std::string no_thread_for_waits(const Evidence& run) {
    if (run.times(Counter::decline_no_cpu) == 0) return {};
    const uint64_t waits = time_of_calls(run, waits_for_requests);
    if (share_of(waits, run.run_ns()) < much) return {};
    return "waits for requests take " + percent(waits, run.run_ns()) +
           " of the run, and no CPU is free for an offload thread: leave each rank one (mpirun "
           "-bind-to core:2), or try VECMPI_OFFLOAD=on";
}

std::string not_in_one_container(const Evidence& run) {
    if (run.facts.nodes != 1 || run.times(Counter::decline_no_arena) == 0 ||
        run.times(Counter::decline_gpu) != 0 || run.times(Counter::node_comms) != 0)
        return {};
    return "ranks of a node cannot reach each other's memory: run them in one container, or with "
           "one process namespace";
}

std::string gpu_runtime(const Evidence& run) {
    if (run.times(Counter::decline_gpu) == 0) return {};
    return "a GPU runtime is loaded, so most is left to the library: do not load it where no GPU "
           "is used";
}

std::string own_error_handlers(const Evidence& run) {
    if (run.times(Counter::decline_error_handler) + run.times(Counter::decline_handlers) == 0)
        return {};
    return "error handler functions of the program keep operations with the library: "
           "MPI_ERRORS_RETURN or MPI_ERRORS_ARE_FATAL do not";
}

std::string short_lived_types(const Evidence& run) {
    uint64_t times = 0, all = 0;
    for (const DatatypeUse& use : run.numbers.datatypes) {
        times += use.by_library[static_cast<size_t>(WhyLibrary::too_little)] +
                 use.by_library[static_cast<size_t>(WhyLibrary::given_back)];
        all += use.by_plan + times_by_library(use);
    }
    constexpr uint64_t many = 1000;
    if (times < many || share_of(times, all) < 0.5) return {};
    return "datatypes were used " + std::to_string(times) +
           " times before they had a plan: make each once, keep it, and free it at the end";
}

std::string unknown_network(const Evidence& run) {
    if (run.facts.nodes < 2 || run.facts.network_is_known) return {};
    return "measure this network once (vecmpi-bench network) and set VECMPI_NETWORK: choices rest "
           "on a slow one";
}

std::string costly_trials(const Evidence& run) {
    const uint64_t cost = run.times(Counter::trials_cost_ns);
    constexpr double noticed = 0.01;
    if (run.facts.has_profile || share_of(cost, run.run_ns()) < noticed) return {};
    return "finding the fastest ways cost " + percent(cost, run.run_ns()) +
           " of the run: VECMPI_PROFILE=learn keeps what was found for the next job";
}

std::string late_private_comms(const Evidence& run) {
    if (run.times(Counter::decline_no_private_comm) == 0) return {};
    return "a nonblocking collective is vecmpi's only after a blocking one on its communicator: "
           "make one early";
}

std::string short_run(const Evidence& run) {
    const uint64_t longest = value_at(run.numbers.largest, run_time_index);
    if (longest >= 1'000'000'000) return {};
    return "a run of " + format_time(longest) +
           " says little: memory of a node serves from the 21st small call on a communicator";
}

// The most frequent reason, where nearly all calls have been left.
std::string most_left(const Evidence& run) {
    uint64_t own = 0;
    for (size_t call = 0; call < max_calls; ++call)
        for (size_t path = 0; path < number_of_paths; ++path)
            if (is_own_way(static_cast<Path>(path)))
                own += value_at(run.numbers.totals, calls_index(call, static_cast<Path>(path)));
    size_t most = number_of_events;
    uint64_t times = own;
    for (size_t i = 0; i < number_of_events; ++i) {
        const uint64_t value = value_at(run.numbers.totals, i);
        if (counter_texts[i].kind != CounterKind::decline || value <= times) continue;
        most = i;
        times = value;
    }
    if (most == number_of_events) return {};
    return "most was left to the library (" + std::string(counter_texts[most].text) +
           "): docs/troubleshooting.md, \"It is not faster\"";
}

// In this order: what costs most first.
constexpr std::string (*advisers[])(const Evidence& run) = {
    too_many_ranks,      gpu_runtime,        uneven_load,     not_in_one_container,
    no_thread_for_waits, short_lived_types,  unknown_network, own_error_handlers,
    costly_trials,       late_private_comms, short_run,       most_left,
};

}  // namespace

std::vector<std::string> advices(const ReportFacts& facts, const ReportNumbers& numbers) {
    const Evidence run{facts, numbers};
    std::vector<std::string> found;
    if (run.run_ns() == 0) return found;
    if (!run.is_worth_it(little))
        return {"communication is " + percent(run.mpi_ns(), run.run_ns()) +
                " of the run: look elsewhere for time"};
    for (const auto adviser : advisers) {
        std::string text = adviser(run);
        if (!text.empty()) found.push_back(std::move(text));
        if (found.size() == most_advices) break;
    }
    return found;
}

}  // namespace vecmpi::base
