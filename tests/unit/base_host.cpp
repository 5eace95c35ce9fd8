// SPDX-License-Identifier: BSD-3-Clause
// What a process sees of its node: launcher, affinity, quota, loaded libraries; the log; memory
// over a fork.
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/api.hpp"
#include "base/host_parts.hpp"

using namespace vecmpi;
using namespace vecmpi::base;

namespace {

LauncherView view_of(std::vector<const char*> environment) {
    environment.push_back(nullptr);
    return launcher_view(environment.data());
}

// What `body` writes to standard error.
template <typename Body>
std::string standard_error_of(Body body) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    body();
    dup2(saved, STDERR_FILENO);
    close(saved);
    std::string text;
    char block[4096];
    for (ssize_t length; (length = read(ends[0], block, sizeof block)) > 0;)
        text.append(block, static_cast<size_t>(length));
    close(ends[0]);
    return text;
}

bool is_loaded(const std::string& soname) {
    auto libraries = loaded_libraries();
    return std::any_of(libraries.begin(), libraries.end(),
                       [&](const LoadedLibrary& library) { return library.soname == soname; });
}

}  // namespace

TEST_CASE("launcher_view knows the launchers", "[base][host]") {
    struct Case {
        std::vector<const char*> environment;
        int local_ranks;
        int local_rank;
    };
    for (const Case& test : std::vector<Case>{
             {{}, 1, 0},
             {{"PATH=/bin"}, 1, 0},
             {{"PMI_RANK=3"}, 0, 0},
             {{"PMI_FD=6"}, 0, 0},
             {{"PMIX_RANK=3"}, 0, 0},
             {{"PMI_RANK=3", "MPI_LOCALNRANKS=4", "MPI_LOCALRANKID=3"}, 4, 3},
             {{"MPI_LOCALNRANKS=4", "MPI_LOCALRANKID=4"}, 1, 0},
             {{"MPI_LOCALNRANKS=x", "MPI_LOCALRANKID=0", "PMI_RANK=0"}, 0, 0},
             {{"PALS_RANKID=9", "PALS_LOCAL_SIZE=8", "PALS_LOCAL_RANKID=1"}, 8, 1},
             {{"MV2_COMM_WORLD_LOCAL_SIZE=2", "MV2_COMM_WORLD_LOCAL_RANK=1"}, 2, 1},
             {{"OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=0"}, 2, 0},
             {{"SLURM_PROCID=5", "SLURM_STEP_TASKS_PER_NODE=4(x2)", "SLURM_NODEID=1",
               "SLURM_LOCALID=1"},
              4,
              1},
             {{"SLURM_PROCID=8", "SLURM_STEP_TASKS_PER_NODE=4(x2),3", "SLURM_NODEID=2",
               "SLURM_LOCALID=2"},
              3,
              2},
             {{"SLURM_PROCID=0", "SLURM_LOCALID=0"}, 0, 0},
             {{"SLURM_STEP_TASKS_PER_NODE=1", "SLURM_LOCALID=0", "MPI_LOCALNRANKS=4",
               "MPI_LOCALRANKID=2"},
              4,
              2},
         }) {
        LauncherView view = view_of(test.environment);
        CAPTURE(test.environment.size(), test.environment.empty() ? "" : test.environment[0]);
        CHECK(view.local_ranks == test.local_ranks);
        CHECK(view.local_rank == test.local_rank);
    }
    CHECK(launcher_view(nullptr).local_ranks == 1);
    CHECK(view_of({"PMI_SIZE=8", "MPI_LOCALNRANKS=4", "MPI_LOCALRANKID=3"}).job_ranks == 8);
    CHECK(view_of({"MPI_LOCALNRANKS=4", "MPI_LOCALRANKID=3"}).job_ranks == 0);
    CHECK(view_of({"SLURM_STEP_TASKS_PER_NODE=2", "SLURM_LOCALID=1", "SLURM_CPUS_ON_NODE=12"})
              .cpus_of_node == 12);
}

TEST_CASE("tasks_of_node reads Slurm's list", "[base][host]") {
    CHECK(tasks_of_node("4", 0) == 4);
    CHECK(tasks_of_node("4", 1) == 0);
    CHECK(tasks_of_node("4(x2),3", 1) == 4);
    CHECK(tasks_of_node("4(x2),3", 2) == 3);
    CHECK(tasks_of_node("1,2(x3),5", 3) == 2);
    CHECK(tasks_of_node("1,2(x3),5", 4) == 5);
    CHECK(tasks_of_node("", 0) == 0);
    CHECK(tasks_of_node("x", 0) == 0);
    CHECK(tasks_of_node("4(x),2", 0) == 0);
}

TEST_CASE("threads_from_list takes the outermost level", "[base][host]") {
    CHECK(threads_from_list("4") == 4);
    CHECK(threads_from_list(" 4,2") == 4);
    CHECK(threads_from_list("") == 0);
    CHECK(threads_from_list("0") == 0);
    CHECK(threads_from_list("-3") == 0);
    CHECK(threads_from_list("many") == 0);
    CHECK(threads_from_list("99999999999") == 0);
}

TEST_CASE("A quota is worth whole CPUs", "[base][host]") {
    CHECK(quota_cpus(-1, 100000) == 0);
    CHECK(quota_cpus(200000, 100000) == 2);
    CHECK(quota_cpus(250000, 100000) == 2);
    CHECK(quota_cpus(50000, 100000) == 1);
    CHECK(quota_cpus(100000, 0) == 0);
    CHECK(quota_cpus(LLONG_MAX, 1) == INT_MAX);
    CHECK(quota_from_cpu_max("max 100000\n") == 0);
    CHECK(quota_from_cpu_max("400000 100000\n") == 4);
    CHECK(quota_from_cpu_max("") == 0);
    CHECK(quota_of_process() >= 0);
}

TEST_CASE("look_at_host agrees with the kernel", "[base][host]") {
    HostView host = look_at_host();
    cpu_set_t mask;
    REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);
    CHECK(host.cpus.size() == static_cast<size_t>(CPU_COUNT(&mask)));
    CHECK(std::is_sorted(host.cpus.begin(), host.cpus.end()));
    CHECK(host.cpus_of_node >= 1);
    CHECK(host.cpus_of_node <= sysconf(_SC_NPROCESSORS_ONLN));
    CHECK((host.numa_node.empty() || host.numa_node.size() == host.cpus.size()));
    CHECK(affinity_of(getpid()) == host.cpus);
}

TEST_CASE("keep_this_thread_on keeps the calling thread only", "[base][host]") {
    std::vector<int> all = affinity_of(0);
    REQUIRE_FALSE(all.empty());
    std::vector<int> pinned;
    bool refused = true;
    std::thread([&] {
        if (keep_this_thread_on({all.back()})) pinned = affinity_of(0);
        refused = !keep_this_thread_on({-1}) && !keep_this_thread_on({}) &&
                  !keep_this_thread_on({1 << 20}) && !keep_this_thread_on({60000});
    }).join();
    CHECK(pinned == std::vector<int>{all.back()});
    CHECK(refused);
    CHECK(affinity_of(0) == all);
}

TEST_CASE("NUMA: quiet and harmless where there is one node", "[base][host]") {
    CHECK(numa_node_of_cpu(-1) == -1);
    void* memory = allocate_wiped_on_fork(1 << 16);
    REQUIRE(memory != nullptr);
    prefer_numa_node(memory, 1 << 16, -1);
    prefer_numa_node(memory, 1 << 16, 0);
    prefer_numa_node(memory, 1, 5000);
    if (number_of_numa_nodes() == 1) {
        CHECK(numa_node_of_cpu(0) == -1);
        CHECK_FALSE(is_loaded("libnuma.so.1"));
    } else {
        CHECK(numa_node_of_cpu(affinity_of(0).front()) >= -1);
    }
    munmap(memory, 1 << 16);
}

TEST_CASE("a soname tells an MPI library's ABI", "[base][host]") {
    for (const char* soname : {"libmpi.so.12", "libmpich.so.12", "libmpi_gnu_91.so.12",
                               "libmpi_cray.so.12", "libmpi_nvidia.so.12"})
        CHECK(abi_of(soname) == MpiAbi::mpich);
    CHECK(abi_of("libmpi_abi.so.1") == MpiAbi::standard);
    for (const char* soname : {"libmpi.so.40", "libmpi_abi.so.0", "libmpi_abi.so.12", "libmpi.so",
                               "libmpifort_gnu_91.so.12", "libmpicxx.so.12", "libmpi_ibm.so.3", ""})
        CHECK(abi_of(soname) == MpiAbi::other);
}

TEST_CASE("loaded_libraries sees what is loaded, hidden or not", "[base][host]") {
    CHECK(is_loaded("libc.so.6"));
    // libutil is an empty shell since glibc 2.34 and loaded by nothing else here.
    constexpr const char* soname = "libutil.so.1";
    REQUIRE_FALSE(is_loaded(soname));
    CHECK(handle_of_loaded({"", soname}) == nullptr);
    CHECK_FALSE(is_loaded(soname));  // looking did not load it
    const uint64_t loads = libraries_ever_loaded();
    CHECK(loads > 0);
    CHECK(libraries_ever_loaded() == loads);
    void* handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle != nullptr);
    CHECK(is_loaded(soname));
    CHECK(libraries_ever_loaded() > loads);
    for (const LoadedLibrary& library : loaded_libraries()) {
        if (library.soname != soname) continue;
        CHECK(library.path.find('/') != std::string::npos);
        void* found = handle_of_loaded(library);
        CHECK(found == handle);
        if (found != nullptr) dlclose(found);
        found = handle_of_loaded({"/nowhere/" + library.soname, library.soname});
        CHECK(found == handle);
        if (found != nullptr) dlclose(found);
    }
    dlclose(handle);
    CHECK(handle_of_loaded({"", ""}) == nullptr);
}

TEST_CASE("Wiped memory is zero in a child and whole in the parent", "[base][host]") {
    constexpr size_t bytes = 10000;
    auto* memory = static_cast<unsigned char*>(allocate_wiped_on_fork(bytes));
    REQUIRE(memory != nullptr);
    CHECK(std::all_of(memory, memory + bytes, [](unsigned char byte) { return byte == 0; }));
    std::memset(memory, 0x5a, bytes);
    pid_t child = fork();
    if (child == 0) {
        bool wiped =
            std::all_of(memory, memory + bytes, [](unsigned char byte) { return byte == 0; });
        _exit(wiped ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(std::all_of(memory, memory + bytes, [](unsigned char byte) { return byte == 0x5a; }));
    munmap(memory, bytes);
    CHECK(allocate_wiped_on_fork(0) == nullptr);
    CHECK(allocate_wiped_on_fork(SIZE_MAX / 2) == nullptr);
}

TEST_CASE("log_line writes one line with the rank, or nothing", "[base][log]") {
    if (settings().log < LogLevel::warn || settings().log == LogLevel::debug)
        return;  // set by the user
    CHECK(log_wants(LogLevel::error));
    CHECK(standard_error_of([] { log_line(LogLevel::debug, "hidden"); }).empty());
    errno = 42;
    CHECK(standard_error_of([] { log_line(LogLevel::warn, "%s %d", "seven", 7); }) ==
          "vecmpi: seven 7\n");
    CHECK(standard_error_of([] { log_line(LogLevel::error, "two\nlines"); }) ==
          "vecmpi: two lines\n");
    set_log_rank(12);
    CHECK(standard_error_of([] { log_line(LogLevel::warn, "x"); }) == "vecmpi[12]: x\n");
    std::string text =
        standard_error_of([] { log_line(LogLevel::warn, "%s", std::string(5000, 'y').c_str()); });
    CHECK(text.size() <= 1000);
    CHECK(text.size() > 900);
    CHECK(text.back() == '\n');
    CHECK(std::count(text.begin(), text.end(), '\n') == 1);
    set_log_rank(-1);
}

TEST_CASE("log_line leaves errno alone", "[base][log]") {
    int after = 0;
    std::string text = standard_error_of([&] {
        errno = EDOM;
        log_line(LogLevel::error, "oops");
        after = errno;
    });
    CHECK(after == EDOM);
    CHECK(text == "vecmpi: oops\n");
}
