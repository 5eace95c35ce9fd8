// SPDX-License-Identifier: BSD-3-Clause
// Asks each MPI library for its version in a child process, so that none of them runs code in this
// one.
#include "mpi_libraries.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace vecmpi::info {
namespace {

void write_line(int pipe, const char* text) {
    std::string line(text, std::strcspn(text, "\n"));
    line += '\n';
    // What does not fit goes missing: the parent then shows less.
    [[maybe_unused]] ssize_t written = write(pipe, line.data(), line.size());
}

// In the child: path and version, a line each. Never returns.
[[noreturn]] void describe_library(const char* soname, int pipe) {
    alarm(10);  // a library that hangs while it is loaded must not hang us
    int null_device = open("/dev/null", O_WRONLY);
    if (null_device >= 0) dup2(null_device, STDERR_FILENO);
    void* library = dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) _exit(1);
    link_map* map = nullptr;
    write_line(pipe, dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : soname);
    using GetLibraryVersion = int (*)(char*, int*);
    auto get_version =
        reinterpret_cast<GetLibraryVersion>(dlsym(library, "MPI_Get_library_version"));
    static char version[1 << 16];  // MPICH may write 8192 bytes, others fewer
    int length = 0;
    if (get_version != nullptr && get_version(version, &length) == 0) write_line(pipe, version);
    _exit(0);
}

std::string read_all(int pipe) {
    std::string text;
    char block[4096];
    for (;;) {
        ssize_t length = read(pipe, block, sizeof block);
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) return text;
        text.append(block, static_cast<size_t>(length));
    }
}

// Output of describe_library; empty where there is no such library.
std::string ask_child(const char* soname) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    pid_t child = fork();
    if (child == 0) describe_library(soname, ends[1]);
    close(ends[1]);
    std::string answer = child > 0 ? read_all(ends[0]) : std::string();
    close(ends[0]);
    if (child > 0) waitpid(child, nullptr, 0);
    return answer;
}

bool has_mpich_abi(std::string_view soname, std::string_view version) {
    // Open MPI 1.10 had the soname libmpi.so.12 too.
    return (soname == "libmpich.so.12" || soname == "libmpi.so.12") &&
           !version.starts_with("Open MPI");
}

}  // namespace

std::vector<MpiLibrary> find_mpi_libraries() {
    std::vector<MpiLibrary> libraries;
    for (const char* soname :
         {"libmpich.so.12", "libmpi.so.12", "libmpi.so.40", "libmpi_abi.so.1"}) {
        std::string answer = ask_child(soname);
        if (answer.empty()) continue;
        size_t end = answer.find('\n');
        std::string version = answer.substr(std::min(end + 1, answer.size()));
        version.erase(std::min(version.find('\n'), version.size()));
        std::replace(version.begin(), version.end(), '\t', ' ');
        libraries.push_back(
            {soname, answer.substr(0, end), version, has_mpich_abi(soname, version)});
    }
    return libraries;
}

}  // namespace vecmpi::info
