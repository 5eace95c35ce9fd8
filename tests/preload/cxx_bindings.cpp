// SPDX-License-Identifier: BSD-3-Clause
// Error handlers of MPI 2's C++ bindings: functions that take objects and may throw, called by the
// bindings' own wrapper.
#include <mpi.h>

#include <cstdio>

namespace {

MPI::Intracomm expected;

void tells(MPI::Comm& comm, int* code, ...) {
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0, in = 0;
    const int out = 3;
    comm.Get_name(name, length);
    MPI::COMM_SELF.Sendrecv(&out, 1, MPI::INT, 0, 0, &in, 1, MPI::INT, 0, 0);
    std::printf("handler %d %s %d\n", MPI_Comm(comm) == MPI_Comm(expected), length > 0 ? name : "-",
                MPI::Get_error_class(*code) + in);
}

void throws(MPI::Comm&, int* code, ...) { throw MPI::Get_error_class(*code); }

void of_window(MPI::Win& window, int* code, ...) {
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    window.Get_name(name, length);
    std::printf("window %s %d\n", name, MPI::Get_error_class(*code));
}

}  // namespace

int main(int argc, char** argv) {
    MPI::Init(argc, argv);
    const int rank = MPI::COMM_WORLD.Get_rank();
    expected = MPI::COMM_WORLD.Dup();
    expected.Set_name("other");
    expected.Set_errhandler(MPI::Comm::Create_errhandler(tells));
    int value = 0, sum = 0;
    expected.Send(&value, 1, MPI::INT, 99, 0);
    MPI_Isend(&value, 1, MPI_INT, 0, -8, expected, nullptr);
    expected.Set_errhandler(MPI::Comm::Create_errhandler(throws));
    try {
        expected.Bcast(&value, 1, MPI::INT, -1);
    } catch (int error) {
        std::printf("%d caught %d\n", rank, error);
    }
    int memory[2];
    MPI::Win window = MPI::Win::Create(memory, 8, 4, MPI::INFO_NULL, MPI::COMM_WORLD);
    window.Set_name("glass");
    window.Set_errhandler(MPI::Win::Create_errhandler(of_window));
    window.Fence(0);
    window.Put(&value, 1, MPI::INT, 99, 0, 1, MPI::INT);
    window.Fence(0);
    window.Free();
    MPI::COMM_WORLD.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
    std::printf("%d sum %d\n", rank, sum);
    expected.Free();
    MPI::Finalize();
}
