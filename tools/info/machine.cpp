// SPDX-License-Identifier: BSD-3-Clause
// Reads the processor, its caches and its memory nodes from the kernel. Changes nothing.
#include "machine.hpp"

#include <sys/utsname.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <cctype>
#include <fstream>

namespace vecmpi::info {
namespace {

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos)
            return line.substr(colon + 2);
    }
    utsname system{};
    return uname(&system) == 0 ? system.machine : "unknown";
}

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    [[maybe_unused]] auto add = [&](bool has, const char* name) {
        if (has) names.push_back(name);
    };
#if defined(__x86_64__)
    add(__builtin_cpu_supports("sse4.2"), "sse4.2");
    add(__builtin_cpu_supports("avx"), "avx");
    add(__builtin_cpu_supports("avx2"), "avx2");
    add(__builtin_cpu_supports("fma"), "fma");
    add(__builtin_cpu_supports("avx512f"), "avx512f");
    add(__builtin_cpu_supports("avx512bw"), "avx512bw");
    add(__builtin_cpu_supports("avx512dq"), "avx512dq");
    add(__builtin_cpu_supports("avx512vl"), "avx512vl");
    add(__builtin_cpu_supports("avx512vbmi"), "avx512vbmi");
    add(__builtin_cpu_supports("avx512vbmi2"), "avx512vbmi2");
    add(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
#elif defined(__aarch64__)
    add(getauxval(AT_HWCAP) & HWCAP_ASIMD, "neon");
    add(getauxval(AT_HWCAP) & HWCAP_SVE, "sve");
    add(getauxval(AT_HWCAP2) & HWCAP2_SVE2, "sve2");
#endif
    return names;
}

std::vector<std::string> caches() {
    std::vector<std::string> names;
    for (int index = 0;; ++index) {
        std::string directory = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
        std::string level = first_line(directory + "/level");
        if (level.empty()) return names;
        std::string type = first_line(directory + "/type");
        for (char& letter : type) letter = static_cast<char>(std::tolower(letter));
        std::string name = "L" + level;
        if (type != "unified") name += " " + type;
        names.push_back(name + " " + first_line(directory + "/size"));
    }
}

}  // namespace

Machine look_at_machine() {
    std::string nodes = first_line("/sys/devices/system/node/online");
    return {cpu_model(), instruction_sets(), caches(), nodes.empty() ? "0" : nodes};
}

std::string cpu_list(const std::vector<int>& cpus) {
    std::string text;
    for (size_t first = 0; first < cpus.size();) {
        size_t last = first;
        while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
        if (!text.empty()) text += ",";
        text += std::to_string(cpus[first]);
        if (last > first) text += "-" + std::to_string(cpus[last]);
        first = last + 1;
    }
    return text;
}

}  // namespace vecmpi::info
