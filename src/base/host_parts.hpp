// SPDX-License-Identifier: BSD-3-Clause
// The parts of look_at_host(): environment, affinity, quota. Inside src/base and its tests only.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/api/placement.hpp"

namespace vecmpi::base {

// The CPU that the user's list, which is not empty, gives to a local rank.
int listed_cpu(const CpuChoice& choice, int local_rank) noexcept;
bool is_in_mask(const HostView& host, int cpu) noexcept;

// What a launcher says of a process's place.
struct LauncherView {
    int local_ranks = 0;  // 0: a launcher that does not say
    int local_rank = 0;
    int cpus_of_node = 0;  // CPUs of the job on this node; 0: it does not say
    int job_ranks = 0;     // on all nodes; 0: it does not say
};

// Pure. A process without a launcher is a singleton: one local rank.
LauncherView launcher_view(const char* const* environment);
// Pure. Did a launcher that we know make this environment for one rank?
bool is_environment_of_rank(const char* const* environment);
// Pure. Tasks of one node from Slurm's list: "4(x2),3" is 4, 4, 3. 0: no such list or node.
int tasks_of_node(std::string_view list, int node);
// Pure. First number of OMP_NUM_THREADS ("4,2": 4); 0 where it has none.
int threads_from_list(std::string_view list);

// The process that started the ranks of this node: the nearest ancestor that is not started for a
// rank, as wrapper scripts are. 0: unknown.
pid_t launcher_process();

// CPUs on which a process may run (0: the calling one), ascending; empty: unknown.
std::vector<int> affinity_of(pid_t process);

// Pure. Whole CPUs that a quota is worth, at least 1; 0: no quota.
int quota_cpus(long long quota_us, long long period_us) noexcept;
// Pure. The same from the text of cpu.max: "200000 100000" or "max 100000".
int quota_from_cpu_max(std::string_view text);
// Least quota of this process's control groups and their parents, version 1 or 2; 0: none.
int quota_of_process();

// NUMA nodes of this machine; 1 where the kernel does not say.
int number_of_numa_nodes();

}  // namespace vecmpi::base
