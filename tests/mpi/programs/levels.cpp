// SPDX-License-Identifier: BSD-3-Clause
// Initialisation at each thread level and what is told of it; calls before MPI_Init and after
// MPI_Finalize. Argument: none (MPI_Init), single, funneled, serialized, multiple, or thread (both
// from another thread); or what MPICH's variable for MPI_Init says, in small letters:
// mpi_thread_multiple, or no level at all.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

int level_of(const std::string& name) {
    if (name == "funneled") return MPI_THREAD_FUNNELED;
    if (name == "serialized") return MPI_THREAD_SERIALIZED;
    if (name == "multiple" || name == "thread" || name == "mpi_thread_multiple")
        return MPI_THREAD_MULTIPLE;
    return MPI_THREAD_SINGLE;
}

// Legal at any time (MPI 4.0, 11.4.1).
void always_callable(int initialized, int finalized) {
    int flag = -1;
    int major = 0;
    int minor = 0;
    int length = 0;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Initialized(&flag);
    check_equal(flag, initialized, "Initialized");
    MPI_Finalized(&flag);
    check_equal(flag, finalized, "Finalized");
    MPI_Get_version(&major, &minor);
    check_equal(major, MPI_VERSION, "version");
    MPI_Get_library_version(version, &length);
    topic("version").add_bytes(version, static_cast<size_t>(length));
    int result = -1;
    MPI_Error_class(MPI_ERR_RANK, &result);
    check_equal(result, MPI_ERR_RANK, "Error_class");
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_string(MPI_ERR_TAG, text, &length);
    topic("version").add_bytes(text, static_cast<size_t>(length));
}

void communicate() {
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    for (int round = 0; round < 50; ++round) {
        int in = -1;
        int sum = -1;
        MPI_Request request;
        MPI_Irecv(&in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &request);
        MPI_Send(&world.rank, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&world.rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        check_equal(in, left, "message");
        check_equal(sum, world.size * (world.size - 1) / 2, "sum");
    }
}

void told(int level) {
    int provided = -1;
    int main = -1;
    MPI_Query_thread(&provided);
    MPI_Is_thread_main(&main);
    check_equal(provided, level, "Query_thread");
    check_equal(main, 1, "Is_thread_main of the initialising thread");
    topic("level").add(static_cast<uint64_t>(provided));
    if (level < MPI_THREAD_MULTIPLE) return;
    std::thread other([] {
        int is_main = -1;
        MPI_Is_thread_main(&is_main);
        check_equal(is_main, 0, "Is_thread_main of another thread");
    });
    other.join();
}

bool by_variable() { return world.argument.starts_with("mpi_"); }

void life(int argc, char** argv) {
    read_arguments(argc, argv);
    always_callable(0, 0);
    const int level = level_of(world.argument);
    if (world.argument.empty() || by_variable())
        begin(argc, argv);
    else
        begin(argc, argv, level);
    always_callable(1, 0);
    told(level);
    communicate();
    end();
    always_callable(1, 1);
}

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    if (by_variable()) setenv("MPIR_CVAR_DEFAULT_THREAD_LEVEL", world.argument.c_str(), 1);
    if (world.argument != "thread") {
        life(argc, argv);
        return 0;
    }
    std::thread initialiser(life, argc, argv);
    initialiser.join();
    return 0;
}
