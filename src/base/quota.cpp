// SPDX-License-Identifier: BSD-3-Clause
// CPU time limits of control groups, in whole CPUs. Does not see cpusets: those narrow the affinity
// mask.
#include <algorithm>
#include <climits>
#include <cstdlib>

#include "files.hpp"
#include "host_parts.hpp"
#include "words.hpp"

namespace vecmpi::base {
namespace {

int lower_quota(int left, int right) noexcept {
    if (left == 0 || right == 0) return std::max(left, right);
    return std::min(left, right);
}

int quota_of_directory(const std::string& directory) {
    if (std::string text = read_file(directory + "/cpu.max"); !text.empty())
        return quota_from_cpu_max(text);
    std::string quota = read_file(directory + "/cpu.cfs_quota_us");
    std::string period = read_file(directory + "/cpu.cfs_period_us");
    return quota.empty() || period.empty()
               ? 0
               : quota_cpus(std::atoll(quota.c_str()), std::atoll(period.c_str()));
}

// A parent's limit holds for its children. In a container the path may be missing; the root is
// there.
int quota_of_path(const std::string& mount, std::string path) {
    int least = 0;
    for (;;) {
        if (path == "/") path.clear();
        least = lower_quota(least, quota_of_directory(mount + path));
        if (path.empty()) return least;
        size_t slash = path.rfind('/');
        path.resize(slash == std::string::npos ? 0 : slash);
    }
}

bool lists_cpu(std::string_view controllers) {
    return !take_items(controllers, ",", [](std::string_view name) { return name != "cpu"; });
}

}  // namespace

int quota_cpus(long long quota_us, long long period_us) noexcept {
    if (quota_us <= 0 || period_us <= 0) return 0;
    // Rounded down: a thread that spins on half a CPU is stopped half of the time.
    return static_cast<int>(std::clamp<long long>(quota_us / period_us, 1, INT_MAX));
}

int quota_from_cpu_max(std::string_view text) {
    std::string line(text);
    char* rest = nullptr;
    long long quota = std::strtoll(line.c_str(), &rest, 10);  // "max" reads as 0: no quota
    return quota_cpus(quota, std::strtoll(rest, nullptr, 10));
}

int quota_of_process() {
    std::string groups = read_file("/proc/self/cgroup");  // lines "number:controllers:path"
    int least = 0;
    for (size_t begin = 0; begin < groups.size();) {
        size_t end = std::min(groups.find('\n', begin), groups.size());
        std::string_view line = std::string_view(groups).substr(begin, end - begin);
        begin = end + 1;
        size_t first = line.find(':');
        size_t second = line.find(':', first + 1);
        if (first == std::string_view::npos || second == std::string_view::npos) continue;
        std::string_view controllers = line.substr(first + 1, second - first - 1);
        std::string path(line.substr(second + 1));
        if (controllers.empty()) least = lower_quota(least, quota_of_path("/sys/fs/cgroup", path));
        if (lists_cpu(controllers))
            least = lower_quota(least, quota_of_path("/sys/fs/cgroup/cpu", path));
    }
    return least;
}

}  // namespace vecmpi::base
