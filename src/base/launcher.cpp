// SPDX-License-Identifier: BSD-3-Clause
// What the environment says of the ranks of this node. The MPI library cannot be asked: it is not
// up yet.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "files.hpp"
#include "host_parts.hpp"
#include "words.hpp"

namespace vecmpi::base {
namespace {

// A number that begins the text; -1 where there is none.
int leading_number(std::string_view text) {
    int number = -1;
    auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && rest != text.data() && number >= 0 ? number : -1;
}

int number_in(const char* const* environment, const char* name) {
    const char* value = find_variable(environment, name);
    return value == nullptr ? -1 : leading_number(value);
}

bool is_place(int local_ranks, int local_rank) {
    return local_ranks > 0 && local_rank >= 0 && local_rank < local_ranks;
}

LauncherView slurm_view(const char* const* environment) {
    const char* tasks = find_variable(environment, "SLURM_STEP_TASKS_PER_NODE");
    int node = number_in(environment, "SLURM_NODEID");
    int local_ranks = tasks == nullptr ? 0 : tasks_of_node(tasks, node < 0 ? 0 : node);
    int local_rank = number_in(environment, "SLURM_LOCALID");
    if (!is_place(local_ranks, local_rank)) return {};
    int cpus = number_in(environment, "SLURM_CPUS_ON_NODE");
    return {local_ranks, local_rank, cpus > 0 ? cpus : 0};
}

}  // namespace

int tasks_of_node(std::string_view list, int node) {
    int tasks = 0;
    take_items(list, ",", [&](std::string_view item) {
        const size_t repeat = item.find("(x");
        const int nodes =
            repeat == std::string_view::npos ? 1 : leading_number(item.substr(repeat + 2));
        tasks = leading_number(item);
        if (tasks < 0 || node < nodes) return false;
        node -= nodes;
        tasks = 0;
        return true;
    });
    return std::max(tasks, 0);
}

int threads_from_list(std::string_view list) {
    size_t first = list.find_first_not_of(" \t");
    int threads = first == std::string_view::npos ? -1 : leading_number(list.substr(first));
    return threads > 0 ? threads : 0;
}

bool is_environment_of_rank(const char* const* environment) {
    static constexpr const char* names[] = {"PMI_RANK",     "PMI_FD",
                                            "PMI_PORT",     "PMIX_RANK",
                                            "PALS_RANKID",  "MV2_COMM_WORLD_RANK",
                                            "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"};
    for (const char* name : names)
        if (find_variable(environment, name) != nullptr) return true;
    return false;
}

LauncherView launcher_view(const char* const* environment) {
    struct Names {
        const char* local_ranks;
        const char* local_rank;
    };
    // Hydra first: inside a job of another launcher, its words are about these very ranks.
    static constexpr Names pairs[] = {{"MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
                                      {"PALS_LOCAL_SIZE", "PALS_LOCAL_RANKID"},
                                      {"MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"}};
    for (const Names& names : pairs) {
        int local_ranks = number_in(environment, names.local_ranks);
        int local_rank = number_in(environment, names.local_rank);
        if (is_place(local_ranks, local_rank))
            return {local_ranks, local_rank, 0, std::max(number_in(environment, "PMI_SIZE"), 0)};
    }
    if (LauncherView slurm = slurm_view(environment); slurm.local_ranks > 0) return slurm;
    return {is_environment_of_rank(environment) ? 0 : 1, 0, 0};
}

pid_t launcher_process() {
    pid_t process = getppid();
    constexpr int deepest_wrapper = 16;
    for (int depth = 0; depth < deepest_wrapper && process > 1; ++depth) {
        std::string directory = "/proc/" + std::to_string(process);
        std::string block = read_file(directory + "/environ");
        if (block.empty()) return 0;  // another user's process, whose environment is not readable
        std::vector<const char*> environment;
        for (size_t at = 0; at < block.size(); at += std::strlen(block.c_str() + at) + 1)
            environment.push_back(block.c_str() + at);
        environment.push_back(nullptr);
        if (!is_environment_of_rank(environment.data())) return process;
        std::string status = read_file(directory + "/status");
        size_t parent = status.find("\nPPid:\t");
        if (parent == std::string::npos) return 0;
        process = std::atoi(status.c_str() + parent + 7);
    }
    return 0;
}

}  // namespace vecmpi::base
