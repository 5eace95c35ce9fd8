// SPDX-License-Identifier: BSD-3-Clause
// CPUs and memory of the node, and where the offload thread goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "settings.hpp"
#include "waiting.hpp"

namespace vecmpi::base {

// What a process knows of its place on the node before MPI_Init.
struct HostView {
    std::vector<int> cpus;  // affinity mask, ascending
    int cpus_of_node = 1;   // online CPUs of the node, or the cgroup's CPU quota where lower
    int local_ranks = 0;    // from the launcher's environment; 0: unknown
    int local_rank = 0;
    bool is_whole_job = false;   // the launcher says that no rank is on another node
    int threads_per_rank = 1;    // OMP_NUM_THREADS; all CPUs of the mask where an OpenMP runtime is
                                 // loaded and it is unset
    std::vector<int> numa_node;  // of each of `cpus`; empty: one node, or no libnuma
    int refused_cpu = -1;        // that VECMPI_CPU gives this rank, and the system no thread
};
// listed: VECMPI_CPU. Whether a CPU outside the mask can be had is tried with this thread.
HostView look_at_host(const CpuChoice& listed = {}) noexcept;

// Equal on the processes of one node, and most likely on no others.
uint64_t hash_of_node_name() noexcept;

struct OffloadPlan {
    bool own_thread = false;
    bool own_cpu = false;   // a CPU that no program thread needs: the thread may spin
    int cpu = -1;           // pin there; -1: inherit the mask
    std::vector<int> mask;  // where the thread may go when the CPU turns out to be crowded
    std::string reason;     // one line for the report and vecmpi-info
};
// Pure.
OffloadPlan plan_offload(const Settings& settings, const HostView& host);

// Pure.
Crowd crowd_of(const HostView& host, const OffloadPlan& plan) noexcept;
// Pure: more threads that want to run than CPUs to run them.
inline bool oversubscribed(const HostView& host, const OffloadPlan& plan) noexcept {
    return crowd_of(host, plan) != Crowd::none;
}

// Pure: CPUs that one rank's threads may count on, at least 1.
int cpus_of_rank(const HostView& host) noexcept;

// NUMA node of a CPU, by libnuma if it is installed (loaded on first use); -1: unknown.
int numa_node_of_cpu(int cpu) noexcept;
// Prefers that node for pages of [address, address+bytes). No effect without libnuma or with node
// -1.
void prefer_numa_node(void* address, size_t bytes, int node) noexcept;

// Keeps the calling thread on these CPUs; false where the system refuses.
bool keep_this_thread_on(const std::vector<int>& cpus) noexcept;
bool this_thread_is_on(const std::vector<int>& cpus) noexcept;  // these, ascending, and no others

}  // namespace vecmpi::base
