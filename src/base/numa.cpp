// SPDX-License-Identifier: BSD-3-Clause
// NUMA nodes through libnuma, which is loaded on first use, and only where there are several nodes.
// Nothing else may load it.
#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cctype>
#include <cstring>

#include "base/api.hpp"
#include "host_parts.hpp"

namespace vecmpi::base {
namespace {

// The three functions of libnuma's stable interface that we use; null where it is missing.
struct Libnuma {
    int (*node_of_cpu)(int cpu) = nullptr;
    long (*mbind)(void* start, unsigned long bytes, int policy, const unsigned long* nodes,
                  unsigned long highest_node, unsigned flags) = nullptr;
};

Libnuma load_libnuma() noexcept {
    Libnuma numa;
    void* library = dlopen("libnuma.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return numa;
    auto available = reinterpret_cast<int (*)()>(dlsym(library, "numa_available"));
    if (available == nullptr || available() < 0) return numa;
    numa.node_of_cpu = reinterpret_cast<int (*)(int)>(dlsym(library, "numa_node_of_cpu"));
    // Not numa_tonode_memory: it prints where the kernel refuses.
    numa.mbind = reinterpret_cast<decltype(numa.mbind)>(dlsym(library, "mbind"));
    return numa;
}

int count_numa_nodes() noexcept {
    DIR* directory = opendir("/sys/devices/system/node");
    if (directory == nullptr) return 1;
    int nodes = 0;
    while (const dirent* entry = readdir(directory)) {
        bool is_node = std::strncmp(entry->d_name, "node", 4) == 0 &&
                       std::isdigit(static_cast<unsigned char>(entry->d_name[4])) != 0;
        nodes += is_node ? 1 : 0;
    }
    closedir(directory);
    return nodes > 0 ? nodes : 1;
}

const Libnuma& libnuma() noexcept {
    static const Libnuma loaded = number_of_numa_nodes() > 1 ? load_libnuma() : Libnuma{};
    return loaded;
}

}  // namespace

int number_of_numa_nodes() {
    static const int nodes = count_numa_nodes();
    return nodes;
}

int numa_node_of_cpu(int cpu) noexcept {
    if (cpu < 0 || libnuma().node_of_cpu == nullptr) return -1;
    int node = libnuma().node_of_cpu(cpu);
    return node < 0 ? -1 : node;
}

void prefer_numa_node(void* address, size_t bytes, int node) noexcept {
    constexpr int mpol_preferred = 1;
    constexpr size_t word_bits = 8 * sizeof(unsigned long);
    constexpr size_t most_nodes = 1024;  // as libnuma and the kernel's limit on x86
    if (node < 0 || static_cast<size_t>(node) >= most_nodes || libnuma().mbind == nullptr) return;
    // Whole pages only: what else lies on the first and the last page is not ours to move.
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t first = (reinterpret_cast<size_t>(address) + page - 1) / page * page;
    size_t last = (reinterpret_cast<size_t>(address) + bytes) / page * page;
    if (last <= first) return;
    unsigned long nodes[most_nodes / word_bits] = {};
    nodes[static_cast<size_t>(node) / word_bits] = 1UL << (static_cast<size_t>(node) % word_bits);
    libnuma().mbind(reinterpret_cast<void*>(first), last - first, mpol_preferred, nodes,
                    most_nodes + 1, 0);
}

}  // namespace vecmpi::base
