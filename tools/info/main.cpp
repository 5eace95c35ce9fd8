// SPDX-License-Identifier: BSD-3-Clause
// vecmpi-info: what vecmpi is, what it finds on this machine, and every setting with its value and
// origin.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "explain.hpp"
#include "kernels/api.hpp"
#include "library_traits.hpp"
#include "output.hpp"

#ifndef VECMPI_VERSION
#define VECMPI_VERSION "unknown"
#endif

namespace vecmpi::info {
namespace {

constexpr const char* usage =
    "usage: vecmpi-info [--json | --settings | --markdown | --version | --help]\n"
    "  without an option: this machine, the offload thread here, MPI libraries, settings\n"
    "  --json      the same as JSON\n"
    "  --settings  the settings only, with value and origin\n"
    "  --markdown  the documentation of the settings\n"
    "usage: vecmpi-info --check PROGRAM [--brief]\n"
    "  with which MPI library it is linked, whether vecmpi would serve it, what of it, why not, "
    "and\n"
    "  what to do; a module of Python is a PROGRAM too. Exit status: 0 served, 1 not, 3 it "
    "depends,\n"
    "  2 no such program. --brief: a line, and the file of the MPI library in a second one\n"
    "usage: vecmpi-info --library [FILE]\n"
    "  what vecmpi finds out about the inside of an MPI library, and what it does without it;\n"
    "  FILE: such as libmpi.so.12; by default the one that the loader finds\n"
    "usage: vecmpi-info --explain COLLECTIVE [--bytes 1M] [--ranks 16] [--nodes 16] [--op sum] "
    "[--json]\n"
    "  allreduce, reduce, reduce_scatter, bcast, allgather or alltoall: what each algorithm is "
    "predicted to\n"
    "  take, which path is chosen under the settings in force, and why; --op: sum, user,\n"
    "  noncommutative\n";

Info collect_settings() {
    const SettingsResult& result = process_settings();
    Info info;
    info.version = VECMPI_VERSION;
    info.problem = result.problem;
    info.warnings = result.warnings;
    for (const SettingText& setting : setting_texts()) {
        const char* value = std::getenv(setting.name);
        bool is_set = value != nullptr &&
                      std::string_view(value).find_first_not_of(" \t") != std::string_view::npos;
        info.settings.push_back(
            {setting, is_set ? value : setting.default_value, is_set ? "environment" : "default"});
    }
    return info;
}

Info collect_all() {
    Info info = collect_settings();
    const Settings& settings = process_settings().settings;
    info.machine = look_at_machine();
    info.host = look_at_host(settings.cpu);
    info.plan = plan_offload(settings, info.host);
    info.is_oversubscribed = oversubscribed(info.host, info.plan);
    info.waiting = describe_waiting(wait_policy(settings.wait, crowd_of(info.host, info.plan)));
    info.mpi_libraries = find_mpi_libraries();
    const ProfileChoice& choice = settings.profile;
    const bool is_off = !settings.enabled || choice.kind == ProfileChoice::Kind::off;
    if (!is_off) load_profile(kernels::isa_name(kernels::best_isa()), nullptr);
    info.profile = process_profile();
    info.profile_origin = is_off                                     ? "off"
                          : choice.kind == ProfileChoice::Kind::file ? "environment"
                                                                     : "auto";
    info.profile_places = profile_places(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"),
                                         profile_name(host_model()));
    return info;
}

// 0, or 1 where a setting would stop the job.
int print(const std::string& text, const Info& info) {
    std::fputs(text.c_str(), stdout);
    return info.problem.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}

int run(std::string_view option) {
    if (option == "--help") return print(usage, {});
    if (option == "--version") return print(VECMPI_VERSION "\n", {});
    if (option == "--markdown") return print(format_markdown(), {});
    if (option == "--settings") {
        Info info = collect_settings();
        return print(format_settings(info), info);
    }
    Info info = collect_all();
    return print(option == "--json" ? format_json(info) : format_text(info), info);
}

int explain(const std::vector<std::string>& words) {
    ExplainRequest request;
    const SettingsResult& result = process_settings();
    std::string problem = read_explain(words, request);
    if (!problem.empty()) {
        std::fprintf(stderr, "vecmpi-info: %s\n", problem.c_str());
        return 2;
    }
    if (!result.problem.empty()) {
        std::fprintf(stderr, "vecmpi-info: %s\n", result.problem.c_str());
        return EXIT_FAILURE;
    }
    load_profile(kernels::isa_name(kernels::best_isa()), nullptr);
    adopt_network(process_profile().profile.network);
    return print(request.as_json ? explain_json(request, result.settings)
                                 : explain_text(request, result.settings),
                 {});
}

int check(const std::vector<std::string>& words) {
    const bool is_brief = words.size() == 2 && words[1] == "--brief";
    if (words.empty() || words.size() > 1 + size_t{is_brief}) {
        std::fprintf(stderr, "vecmpi-info: --check takes one program, and --brief behind it\n");
        return static_cast<int>(Verdict::no_program);
    }
    return check_program(words[0], is_brief);
}

bool is_option(std::string_view word) {
    for (std::string_view option : {"--help", "--version", "--markdown", "--settings", "--json"})
        if (word == option) return true;
    return false;
}

}  // namespace
}  // namespace vecmpi::info

int main(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "--check")
        return vecmpi::info::check({argv + 2, argv + argc});
    if (argc > 1 && std::string_view(argv[1]) == "--explain")
        return vecmpi::info::explain({argv + 2, argv + argc});
    if (argc > 1 && std::string_view(argv[1]) == "--library") {
        if (argc < 4) return vecmpi::info::show_library_traits(argc > 2 ? argv[2] : nullptr);
        std::fprintf(stderr, "vecmpi-info: --library takes one file, not also %s\n", argv[3]);
        return 2;
    }
    if (argc > 1 && std::string_view(argv[1]) == vecmpi::info::traits_here)
        return vecmpi::info::show_traits_here(argc > 2 ? argv[2] : nullptr);
    const char* wrong = nullptr;
    if (argc > 1 && !vecmpi::info::is_option(argv[1])) wrong = argv[1];
    if (argc > 2 && wrong == nullptr) wrong = argv[2];
    if (wrong != nullptr) {
        std::fprintf(stderr, "vecmpi-info: unknown option %s (try --help)\n", wrong);
        return 2;
    }
    return vecmpi::info::run(argc > 1 ? argv[1] : "");
}
