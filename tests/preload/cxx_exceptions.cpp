// SPDX-License-Identifier: BSD-3-Clause
// A function of the program that the library calls throws, and the program catches it around the
// MPI call. What the library is in afterwards nobody knows, so each process throws once.
//
//   cxx_exceptions comm | copy | type | window | operator | finalize
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

int key = MPI_KEYVAL_INVALID;

void free_communicator() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(
        MPI_COMM_NULL_COPY_FN, [](MPI_Comm, int, void*, void*) -> int { throw 1; }, &key, nullptr);
    MPI_Comm_set_attr(comm, key, nullptr);
    MPI_Comm_free(&comm);
}

void copy_communicator() {
    MPI_Comm comm;
    MPI_Comm_create_keyval([](MPI_Comm, int, void*, void*, void*, int*) -> int { throw 2; },
                           MPI_COMM_NULL_DELETE_FN, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, nullptr);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
}

void free_type() {
    MPI_Datatype type;
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_create_keyval(
        MPI_TYPE_NULL_COPY_FN, [](MPI_Datatype, int, void*, void*) -> int { throw 3; }, &key,
        nullptr);
    MPI_Type_set_attr(type, key, nullptr);
    MPI_Type_free(&type);
}

void free_window() {
    MPI_Win window;
    static int memory;
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_create_keyval(
        MPI_WIN_NULL_COPY_FN, [](MPI_Win, int, void*, void*) -> int { throw 4; }, &key, nullptr);
    MPI_Win_set_attr(window, key, nullptr);
    MPI_Win_free(&window);
}

void use_operator() {
    MPI_Op op;
    float in[4] = {}, inout[4] = {};
    MPI_Op_create([](void*, void*, int*, MPI_Datatype*) { throw 5; }, 1, &op);
    MPI_Reduce_local(in, inout, 4, MPI_FLOAT, op);
}

void finalize() {
    MPI_Comm_create_keyval(
        MPI_COMM_NULL_COPY_FN, [](MPI_Comm, int, void*, void*) -> int { throw 6; }, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    MPI_Finalize();
}

constexpr struct {
    const char* name;
    void (*run)();
} cases[] = {{"comm", free_communicator}, {"copy", copy_communicator}, {"type", free_type},
             {"window", free_window},     {"operator", use_operator},  {"finalize", finalize}};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const auto& [name, run] : cases) {
        if (argc < 2 || name != std::string(argv[1])) continue;
        try {
            run();
            std::printf("%d: %s did not throw\n", rank, name);
        } catch (int number) {
            std::printf("%d: %s threw %d\n", rank, name, number);
        }
    }
    std::fflush(stdout);
    std::_Exit(0);
}
