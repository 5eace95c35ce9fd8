// SPDX-License-Identifier: BSD-3-Clause
// Text, JSON and Markdown of vecmpi-info.
#include "output.hpp"

#include <algorithm>

namespace vecmpi::info {
namespace {

std::string join(const std::vector<std::string>& words, const char* separator) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
    return text;
}

std::string json_list(std::vector<std::string> words) {
    for (std::string& word : words) word = quote_json(word);
    return "[" + join(words, ", ") + "]";
}

std::string json_bool(bool value) { return value ? "true" : "false"; }

std::string row(const char* title, const std::string& value) {
    std::string text = title;
    text.resize(18, ' ');
    return text + value + "\n";
}

std::string ranks_of_node(const HostView& host) {
    if (host.local_ranks == 0) return "unknown";
    return std::to_string(host.local_ranks) + ", this is " + std::to_string(host.local_rank);
}

std::string library_line(const MpiLibrary& library) {
    std::string version = library.version.empty() ? "no version" : library.version;
    return library.path + ": " + version + ", " +
           (library.is_served() ? "served by " + library.served_by
                                : "of another ABI: passed through untouched");
}

std::string json_settings(const Info& info) {
    std::vector<std::string> rows;
    for (const SettingRow& row : info.settings)
        rows.push_back("    {\"name\": " + quote_json(row.setting.name) + ", \"value\": " +
                       quote_json(row.value) + ", \"origin\": " + quote_json(row.origin) +
                       ", \"default\": " + quote_json(row.setting.default_value) +
                       ", \"accepted\": " + quote_json(row.setting.accepted) +
                       ", \"must_agree\": " + json_bool(row.setting.must_agree) +
                       ", \"text\": " + quote_json(row.setting.text) + "}");
    return "[\n" + join(rows, ",\n") + "\n  ]";
}

std::string json_libraries(const Info& info) {
    std::vector<std::string> rows;
    for (const MpiLibrary& library : info.mpi_libraries)
        rows.push_back("{\"soname\": " + quote_json(library.soname) + ", \"path\": " +
                       quote_json(library.path) + ", \"version\": " + quote_json(library.version) +
                       ", \"served\": " + json_bool(library.is_served()) + "}");
    return "[" + join(rows, ", ") + "]";
}

std::string json_host(const Info& info) {
    return "{\"cpus\": " + quote_json(cpu_list(info.host.cpus)) +
           ", \"cpus_of_node\": " + std::to_string(info.host.cpus_of_node) +
           ", \"local_ranks\": " + std::to_string(info.host.local_ranks) +
           ", \"local_rank\": " + std::to_string(info.host.local_rank) +
           ", \"threads_per_rank\": " + std::to_string(info.host.threads_per_rank) +
           ", \"oversubscribed\": " + json_bool(info.is_oversubscribed) + "}";
}

std::string json_thread(const Info& info) {
    return "{\"on\": " + json_bool(info.plan.own_thread) +
           ", \"own_cpu\": " + json_bool(info.plan.own_cpu) +
           ", \"cpu\": " + std::to_string(info.plan.cpu) +
           ", \"reason\": " + quote_json(info.plan.reason) + "}";
}

std::string profile_line(const Info& info) {
    const LoadedProfile& profile = info.profile;
    if (info.profile_origin == "off") return "off";
    if (!profile.problem.empty()) return profile.problem;
    if (profile.file.empty()) return "none, looked for " + join(info.profile_places, " and ");
    return profile.file + " (" + info.profile_origin +
           "): " + std::to_string(profile.profile.entries) + " measured entries";
}

std::string json_profile(const Info& info) {
    return "{\"file\": " + quote_json(info.profile.file) +
           ", \"origin\": " + quote_json(info.profile_origin) +
           ", \"entries\": " + std::to_string(info.profile.profile.entries) +
           ", \"problem\": " + quote_json(info.profile.problem) +
           ", \"places\": " + json_list(info.profile_places) + "}";
}

}  // namespace

std::string describe_waiting(const WaitPolicy& policy) {
    std::vector<std::string> steps;
    if (policy.spins > 1 || policy.pauses > 0) steps.push_back("spin");
    if (policy.pauses != UINT32_MAX) steps.push_back("yield");
    if (policy.pauses != UINT32_MAX && policy.yields != UINT32_MAX) steps.push_back("sleep");
    return join(steps, ", then ");
}

std::string format_text(const Info& info) {
    std::string text = row("vecmpi", info.version) + row("CPU", info.machine.cpu_model) +
                       row("instruction sets", join(info.machine.instruction_sets, " ")) +
                       row("caches", join(info.machine.caches, ", ")) +
                       row("NUMA nodes", info.machine.numa_nodes) +
                       row("usable CPUs", cpu_list(info.host.cpus) + " (this node offers " +
                                              std::to_string(info.host.cpus_of_node) + ")") +
                       row("ranks here", ranks_of_node(info.host)) +
                       row("threads per rank", std::to_string(info.host.threads_per_rank)) +
                       row("offload thread", info.plan.reason) +
                       row("blocked calls", info.waiting) + row("profile", profile_line(info));
    for (const MpiLibrary& library : info.mpi_libraries)
        text += row("MPI library", library_line(library));
    if (info.mpi_libraries.empty()) text += row("MPI library", "none found by the loader");
    return text + "\n" + format_settings(info);
}

std::string format_settings(const Info& info) {
    size_t name_width = 0, value_width = 0;
    for (const SettingRow& row : info.settings) {
        name_width = std::max(name_width, std::string_view(row.setting.name).size());
        value_width = std::max(value_width, row.value.size());
    }
    std::string text;
    for (const SettingRow& row : info.settings) {
        std::string name = row.setting.name, value = row.value, origin = row.origin;
        name.resize(name_width + 2, ' ');
        value.resize(value_width + 2, ' ');
        origin.resize(13, ' ');
        text += name + value + origin + row.setting.text + "\n";
    }
    for (const std::string& warning : info.warnings) text += "warning: " + warning + "\n";
    if (!info.problem.empty()) text += "error: " + info.problem + "\n";
    return text;
}

std::string format_json(const Info& info) {
    return "{\n  \"version\": " + quote_json(info.version) +
           ",\n  \"cpu\": " + quote_json(info.machine.cpu_model) +
           ",\n  \"instruction_sets\": " + json_list(info.machine.instruction_sets) +
           ",\n  \"caches\": " + json_list(info.machine.caches) +
           ",\n  \"numa_nodes\": " + quote_json(info.machine.numa_nodes) +
           ",\n  \"host\": " + json_host(info) + ",\n  \"offload_thread\": " + json_thread(info) +
           ",\n  \"waiting\": " + quote_json(info.waiting) +
           ",\n  \"mpi_libraries\": " + json_libraries(info) +
           ",\n  \"profile\": " + json_profile(info) + ",\n  \"settings\": " + json_settings(info) +
           ",\n  \"problem\": " + quote_json(info.problem) +
           ",\n  \"warnings\": " + json_list(info.warnings) + "\n}\n";
}

namespace {

std::string list_of_settings(bool same_on_all_ranks) {
    std::string text;
    for (const SettingText& setting : setting_texts())
        if (setting.must_agree == same_on_all_ranks)
            text += std::string("- `") + setting.name + "=" + setting.default_value + "` (" +
                    setting.accepted + "): " + setting.text + "\n";
    return text;
}

}  // namespace

std::string format_markdown() {
    return "<!-- Made by `vecmpi-info --markdown` from src/base/api/settings.def: change that "
           "table. -->\n"
           "# Settings\n\n"
           "Environment variables, read once. Nothing has to be set; `vecmpi-info` shows the "
           "values in force.\n"
           "[guide.md](guide.md#what-to-set) says what to set for which aim.\n\n"
           "- Each stands here with its default, and in brackets what it accepts.\n"
           "- Words may be in upper or lower case. An empty value is the default.\n"
           "- Sizes take `K`, `M`, `G` (powers of 1024) and, in ranges, `max`.\n"
           "- A range is `path:from-to`, `from` included and `to` not. Ranges are separated by "
           "`;` or `,`.\n"
           "  A path alone stands for every size. The last range that holds a size wins.\n"
           "- A value that is not accepted stops the job in MPI_Init with one line.\n"
           "  An unknown `VECMPI_` name gets a warning with the nearest real one.\n\n"
           "## The same on all ranks\n\n" +
           list_of_settings(true) + "\n## Each rank's own\n\n" + list_of_settings(false);
}

}  // namespace vecmpi::info
