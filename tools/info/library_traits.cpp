// SPDX-License-Identifier: BSD-3-Clause
// The table of traits comes from the preloaded library itself, which has filled it in MPI_Init.
#include "library_traits.hpp"

#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>

#include "child_output.hpp"
#include "mpi_libraries.hpp"

namespace vecmpi::info {
namespace {

constexpr unsigned most_seconds = 30;

int fail(const std::string& line) {
    std::fprintf(stderr, "vecmpi-info: --library: %s\n", line.c_str());
    return EXIT_FAILURE;
}

std::string own_path() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

// Beside this program in a build tree; installed, in a lib folder beside bin.
std::string find_vecmpi(const std::string& program, const std::string& build) {
    const std::string folder = program.substr(0, program.find_last_of('/'));
    for (const char* place : {"/", "/../lib*/", "/../lib/*/"}) {
        glob_t found{};
        // NOLINTNEXTLINE(concurrency-mt-unsafe): this program has one thread
        const bool any = glob((folder + place + build).c_str(), 0, nullptr, &found) == 0;
        std::string first = any ? found.gl_pathv[0] : "";
        globfree(&found);
        if (!first.empty()) return first;
    }
    return {};
}

// The build for the library of this file; the one for MPICH where its name tells nothing.
std::string build_of_file(const char* library) {
    const std::string name = library == nullptr ? "" : std::filesystem::path(library).filename();
    for (const VecmpiBuild& build : vecmpi_builds())
        for (const std::string& soname : build.sonames)
            if (name.starts_with(soname.substr(0, soname.find(".so") + 3))) return build.file;
    return vecmpi_builds().front().file;
}

void* load(const char* library) {
    if (library != nullptr) return dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    for (const std::string& soname : vecmpi_builds().front().sonames)
        if (void* handle = dlopen(soname.c_str(), RTLD_NOW | RTLD_GLOBAL)) return handle;
    return nullptr;
}

template <class Function>
Function* find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Entries of vecmpi's own, which lead nowhere without an MPI library.
bool in_vecmpi(void* loaded) { return dlsym(loaded, "vecmpi_library_traits") != nullptr; }

void print_version() {
    auto* const get_version = find<int(char*, int*)>("MPI_Get_library_version");
    static char text[1 << 16];
    int length = 0;
    if (get_version == nullptr || get_version(text, &length) != 0) return;
    std::string line(text);
    line.resize(std::min(line.find('\n'), line.size()));
    for (char& letter : line) letter = letter == '\t' ? ' ' : letter;
    std::printf("%s\n", line.c_str());
}

constexpr const char* without_it = " without it: ";

// name, state, promise, what is done without it
void print_traits(const char* lines) {
    std::istringstream rows(lines);
    for (std::string row; std::getline(rows, row);) {
        std::istringstream cells(row);
        std::string name, state, promise, without;
        for (std::string* cell : {&name, &state, &promise, &without})
            std::getline(cells, *cell, '\t');
        std::printf("%-15s %-9s %s\n", name.c_str(), state.c_str(), promise.c_str());
        if (state != "yes") std::printf("%-25s%s%s\n", "", without_it, without.c_str());
    }
}

// What print_traits() printed.
std::vector<LibraryTrait> read_traits(const std::string& printed) {
    std::vector<LibraryTrait> traits;
    std::istringstream lines(printed);
    std::string version;
    std::getline(lines, version);
    for (std::string line; std::getline(lines, line);) {
        if (const size_t at = line.find(without_it); line.starts_with(' ')) {
            if (at != std::string::npos && !traits.empty())
                traits.back().without = line.substr(at + std::strlen(without_it));
            continue;
        }
        LibraryTrait trait;
        std::istringstream(line) >> trait.name >> trait.state;
        traits.push_back(trait);
    }
    return traits;
}

}  // namespace

int show_library_traits(const char* library) {
    const std::string program = own_path(), build = build_of_file(library);
    const std::string vecmpi = find_vecmpi(program, build);
    if (vecmpi.empty()) return fail("no " + build + " beside this program or in lib");
    setenv("LD_PRELOAD", vecmpi.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
    execl(program.c_str(), program.c_str(), traits_here, library, nullptr);
    return fail("this program cannot be started again");
}

std::vector<LibraryTrait> ask_library_traits(const std::string& library) {
    const std::string program = own_path();
    const std::string vecmpi = find_vecmpi(program, build_of_file(library.c_str()));
    if (vecmpi.empty()) return {};
    return read_traits(output_of_child({program, traits_here, library}, {"LD_PRELOAD=" + vecmpi}));
}

int show_traits_here(const char* library) {
    // For what the MPI library starts.
    unsetenv("LD_PRELOAD");  // NOLINT(concurrency-mt-unsafe): one thread
    alarm(most_seconds);     // one that waits for a launcher
    void* const loaded = load(library);
    if (loaded == nullptr) return fail(std::string("no MPI library: ") + dlerror());
    if (dlsym(loaded, "PMPI_Init") == nullptr || in_vecmpi(loaded))
        return fail("'" + std::string(library != nullptr ? library : "") +
                    "' is no MPI library: accepted is a file such as libmpi.so.12");
    auto* const traits = find<const char*()>("vecmpi_library_traits");
    auto* const init = find<int(int*, char***)>("MPI_Init");
    auto* const finalize = find<int()>("MPI_Finalize");
    if (traits == nullptr || init == nullptr || finalize == nullptr)
        return fail("vecmpi was not preloaded");
    if (init(nullptr, nullptr) != 0) return fail("MPI_Init failed");
    print_version();
    print_traits(traits());
    std::fflush(stdout);
    finalize();
    return EXIT_SUCCESS;
}

}  // namespace vecmpi::info
