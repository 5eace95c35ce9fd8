// SPDX-License-Identifier: BSD-3-Clause
// Asks each MPI library for its version in a child process, so that none of them runs code in this
// one.
#include "mpi_libraries.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "child_output.hpp"

namespace vecmpi::info {
namespace {

void write_line(int pipe, const char* text) {
    std::string line(text, std::strcspn(text, "\n"));
    line += '\n';
    // What does not fit goes missing: the parent then shows less.
    [[maybe_unused]] ssize_t written = write(pipe, line.data(), line.size());
}

// In a child: path and version, a line each; nothing where there is no such library.
void describe_library(const char* soname, int pipe) {
    void* library = dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return;
    link_map* map = nullptr;
    write_line(pipe, dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : soname);
    using GetLibraryVersion = int (*)(char*, int*);
    auto get_version =
        reinterpret_cast<GetLibraryVersion>(dlsym(library, "MPI_Get_library_version"));
    static char version[1 << 16];  // MPICH may write 8192 bytes, others fewer
    int length = 0;
    if (get_version != nullptr && get_version(version, &length) == 0) write_line(pipe, version);
}

// Open MPI 1.10 had the soname libmpi.so.12 too.
bool only_looks_like_mpich(std::string_view soname, std::string_view version) {
    return soname == "libmpi.so.12" && version.starts_with("Open MPI");
}

}  // namespace

const std::vector<VecmpiBuild>& vecmpi_builds() {
    static const std::vector<VecmpiBuild> builds = {
        {"libvecmpi.so", MpiAbi::mpich, {"libmpich.so.12", "libmpi.so.12"}},
        {"libvecmpi_abi.so", MpiAbi::standard, {"libmpi_abi.so.1"}}};
    return builds;
}

std::string build_for(const std::string& soname) {
    for (const VecmpiBuild& build : vecmpi_builds())
        if (build.abi == abi_of(soname)) return build.file;
    return {};
}

MpiLibrary look_at_library(const std::string& file, const std::string& soname) {
    constexpr unsigned most_seconds = 10;
    const std::string answer =
        output_of_child([&](int pipe) { describe_library(file.c_str(), pipe); }, most_seconds);
    const size_t end = std::min(answer.find('\n'), answer.size());
    std::string version = answer.substr(std::min(end + 1, answer.size()));
    version.erase(std::min(version.find('\n'), version.size()));
    std::replace(version.begin(), version.end(), '\t', ' ');
    return {soname, answer.substr(0, end), version,
            only_looks_like_mpich(soname, version) ? "" : build_for(soname)};
}

std::vector<MpiLibrary> find_mpi_libraries() {
    std::vector<MpiLibrary> libraries;
    for (const char* soname :
         {"libmpich.so.12", "libmpi.so.12", "libmpi.so.40", "libmpi_abi.so.1"}) {
        const MpiLibrary library = look_at_library(soname, soname);
        if (!library.path.empty()) libraries.push_back(library);
    }
    return libraries;
}

}  // namespace vecmpi::info
