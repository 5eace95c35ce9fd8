// SPDX-License-Identifier: BSD-3-Clause
// A plugin calls the MPI library by dlsym on its handle, past every entry of ours, in a program
// that is linked as usual: the error handler function runs within that call.
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int handled = 0;
static void handler(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    ++handled;
}

int main(int argc, char** argv) {
    MPI_Errhandler errhandler;
    int value = 0;
    void* library = dlopen("libmpich.so.12", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) library = dlopen("libmpi.so.12", RTLD_LAZY | RTLD_NOLOAD);
    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
    MPI_Errhandler_free(&errhandler);
    int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
    *(void**)&send = dlsym(library, "MPI_Send");
    send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    printf("past the entries: %d\n", handled);
    MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    printf("through an entry: %d\n", handled);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Finalize();
    return 0;
}
