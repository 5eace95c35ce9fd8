// SPDX-License-Identifier: BSD-3-Clause
// Collects what placement decides on. Asks the kernel, the environment and the loader, never MPI.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "base/api.hpp"
#include "host_parts.hpp"

namespace vecmpi::base {
namespace {

// Beyond any kernel's limit; bounds the search for the size of the mask.
constexpr int most_cpus = 1 << 16;

bool openmp_runtime_is_loaded() {
    static constexpr std::string_view runtimes[] = {"libgomp.so", "libomp.so", "libiomp5.so"};
    for (const LoadedLibrary& library : loaded_libraries()) {
        std::string_view name =
            library.soname.empty() ? std::string_view(library.path) : library.soname;
        name.remove_prefix(name.find_last_of('/') + 1);  // npos + 1 is 0
        for (std::string_view runtime : runtimes)
            if (name.starts_with(runtime)) return true;
    }
    return false;
}

int threads_of_rank(size_t cpus_of_mask) {
    const char* wanted = std::getenv("OMP_NUM_THREADS");
    if (int threads = wanted == nullptr ? 0 : threads_from_list(wanted); threads > 0)
        return threads;
    return openmp_runtime_is_loaded() ? static_cast<int>(std::max<size_t>(cpus_of_mask, 1)) : 1;
}

// CPUs that the ranks of this node share. Those that the launcher was kept away from, by taskset or
// a cpuset, do not count.
int cpus_for_ranks(const std::vector<int>& own_cpus, const LauncherView& launcher) {
    int cpus = static_cast<int>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
    int own = static_cast<int>(own_cpus.size());
    if (launcher.cpus_of_node >= own && launcher.cpus_of_node > 0)
        cpus = std::min(cpus, launcher.cpus_of_node);
    if (launcher.local_ranks > 1) {
        pid_t process = launcher_process();
        std::vector<int> mask = process > 0 ? affinity_of(process) : std::vector<int>();
        // A launcher daemon may be bound to a CPU of its own: then its mask says nothing of the
        // ranks'.
        bool holds_ours = std::includes(mask.begin(), mask.end(), own_cpus.begin(), own_cpus.end());
        if (holds_ours && !mask.empty()) cpus = std::min(cpus, static_cast<int>(mask.size()));
    }
    if (int quota = quota_of_process(); quota > 0) cpus = std::min(cpus, quota);
    return cpus;
}

// Tried, for the kernel knows what is online and what the cpuset allows.
bool may_run_on(int cpu, const std::vector<int>& mask) noexcept {
    const bool may = keep_this_thread_on({cpu});
    if (may) keep_this_thread_on(mask);
    return may;
}

HostView look(const CpuChoice& listed) {
    HostView host;
    host.cpus = affinity_of(0);
    LauncherView launcher = launcher_view(environ);
    host.local_ranks = launcher.local_ranks;
    host.local_rank = launcher.local_rank;
    host.is_whole_job = launcher.local_ranks > 0 && launcher.job_ranks == launcher.local_ranks;
    host.cpus_of_node = cpus_for_ranks(host.cpus, launcher);
    host.threads_per_rank = threads_of_rank(host.cpus.size());
    if (number_of_numa_nodes() > 1)
        for (int cpu : host.cpus) host.numa_node.push_back(numa_node_of_cpu(cpu));
    bool unknown = std::count(host.numa_node.begin(), host.numa_node.end(), -1) > 0;
    if (unknown) host.numa_node.clear();
    if (listed.cpus.empty()) return host;
    const int cpu = listed_cpu(listed, host.local_rank);
    if (!is_in_mask(host, cpu) && !may_run_on(cpu, host.cpus)) host.refused_cpu = cpu;
    return host;
}

}  // namespace

std::vector<int> affinity_of(pid_t process) {
    // The kernel refuses a mask that is shorter than its own, so it grows until it fits.
    for (int room = 1024; room <= most_cpus; room *= 2) {
        cpu_set_t* mask = CPU_ALLOC(room);
        if (mask == nullptr) return {};
        std::vector<int> cpus;
        size_t bytes = CPU_ALLOC_SIZE(room);
        bool known = sched_getaffinity(process, bytes, mask) == 0;
        for (int cpu = 0; known && cpu < room; ++cpu)
            if (CPU_ISSET_S(cpu, bytes, mask)) cpus.push_back(cpu);
        CPU_FREE(mask);
        if (known) return cpus;
    }
    return {};
}

HostView look_at_host(const CpuChoice& listed) noexcept {
    try {
        return look(listed);
    } catch (...) {  // out of memory: a view on which nothing is turned on
        return HostView();
    }
}

bool keep_this_thread_on(const std::vector<int>& cpus) noexcept {
    const int last = cpus.empty() ? -1 : *std::max_element(cpus.begin(), cpus.end());
    if (last < 0 || last >= most_cpus) return false;
    cpu_set_t* mask = CPU_ALLOC(last + 1);
    if (mask == nullptr) return false;
    size_t bytes = CPU_ALLOC_SIZE(last + 1);
    CPU_ZERO_S(bytes, mask);
    for (int cpu : cpus)
        if (cpu >= 0) CPU_SET_S(cpu, bytes, mask);
    bool kept = sched_setaffinity(0, bytes, mask) == 0;
    CPU_FREE(mask);
    return kept;
}

bool this_thread_is_on(const std::vector<int>& cpus) noexcept {
    try {
        return affinity_of(0) == cpus;
    } catch (...) {  // out of memory
        return false;
    }
}

uint64_t hash_of_node_name() noexcept {
    char name[HOST_NAME_MAX + 1] = {};
    gethostname(name, sizeof name - 1);
    return std::hash<std::string_view>{}(name);
}

}  // namespace vecmpi::base
