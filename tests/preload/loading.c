// SPDX-License-Identifier: BSD-3-Clause
// A thread loads a library whose constructor calls MPI: it holds the loader's lock and wants the
// MPI library's, while another thread waits in the MPI library.
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

atomic_int loading;  // the constructor sets it

static atomic_int ready;

static void* receive(void* unused) {
    (void)unused;
    int in = 0, out = 0;
    MPI_Sendrecv(&out, 1, MPI_INT, 0, 7, &in, 1, MPI_INT, 0, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    atomic_store(&ready, 1);
    while (!atomic_load(&loading)) continue;
    MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

int main(int argc, char** argv) {
    int provided, rank;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_create(&thread, NULL, receive, NULL);
    while (!atomic_load(&ready)) continue;
    void* library = dlopen("./libsends.so", RTLD_NOW);
    pthread_join(thread, NULL);
    printf("%d: %s\n", rank, library ? "loaded" : dlerror());
    MPI_Finalize();
    return 0;
}
