// SPDX-License-Identifier: BSD-3-Clause
// Reads /proc of this process and sets its affinity. Not for other processes.
#include "machine.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace vecmpi::bench {
namespace {

// The text after "Name:" in a /proc status file, without the blanks around it.
std::string status_field(const std::string& file, const std::string& name) {
    std::ifstream status(file);
    for (std::string line; std::getline(status, line);) {
        if (!line.starts_with(name + ":")) continue;
        const std::size_t begin = line.find_first_not_of(" \t", name.size() + 1);
        return begin == std::string::npos ? "" : line.substr(begin);
    }
    return "";
}

long status_number(const std::string& name) {
    return std::atol(status_field("/proc/self/status", name).c_str());
}

}  // namespace

bool pin_this_thread(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(cpu), &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

Footprint read_footprint() {
    return {status_number("VmRSS"), status_number("VmHWM"),
            static_cast<int>(status_number("Threads"))};
}

std::vector<ThreadPlace> read_threads() {
    std::vector<long> ids;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
        ids.push_back(std::atol(entry.path().filename().c_str()));
    std::sort(ids.begin(), ids.end());
    std::vector<ThreadPlace> places;
    for (const long id : ids) {
        const std::string file = "/proc/self/task/" + std::to_string(id) + "/status";
        places.push_back({status_field(file, "Name"), status_field(file, "Cpus_allowed_list")});
    }
    return places;
}

std::string mapped_preload() {
    const char* preload = std::getenv("LD_PRELOAD");
    if (preload == nullptr || *preload == '\0') return "";
    std::ifstream maps("/proc/self/maps");
    std::string file = std::filesystem::weakly_canonical(preload).string();
    for (std::string line; std::getline(maps, line);)
        if (line.ends_with(" " + file)) return file;
    return "";
}

}  // namespace vecmpi::bench
