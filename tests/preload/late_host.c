// SPDX-License-Identifier: BSD-3-Clause
// A program without MPI that asks for it, finds none, and then loads a library that brings it with
// RTLD_LOCAL.
#include <dlfcn.h>
#include <stdio.h>

extern int MPI_Initialized(int*) __attribute__((weak));

// Without vecmpi this program never sees the MPI that its library uses; with it, the answer must be
// right.
static void ask(const char* when, int expected) {
    int flag = expected;
    if (MPI_Initialized != NULL) MPI_Initialized(&flag);
    printf("%s: %s\n", when, flag == expected ? "right" : "wrong");
}

int main(int argc, char** argv) {
    void* library;
    ask("before", 0);
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) return 1;
    int (*start)(void) = dlsym(library, "library_start");
    int (*rank)(void) = dlsym(library, "library_rank");
    int (*ring)(int) = dlsym(library, "library_ring");
    long (*sum)(long) = dlsym(library, "library_sum");
    int (*stop)(void) = dlsym(library, "library_stop");
    start();
    ask("between", 1);
    printf("%d: sum %ld ring %d\n", rank(), sum(rank() + 2), ring(rank() * 3));
    stop();
    ask("after", 1);
    return 0;
}
