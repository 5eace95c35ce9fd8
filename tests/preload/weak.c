// SPDX-License-Identifier: BSD-3-Clause
// A program that would use MPI if it were there, but has none: weak references only.
#include <stdio.h>

extern int MPI_Init(int*, char***) __attribute__((weak));
extern int MPI_Initialized(int*) __attribute__((weak));
extern int MPI_Finalized(int*) __attribute__((weak));

int main(void) {
    int began = 0, ended = 0;
    if (MPI_Init != NULL && MPI_Initialized != NULL) MPI_Initialized(&began);
    if (MPI_Finalized != NULL) MPI_Finalized(&ended);
    printf("began %d ended %d\n", began, ended);
    return 0;
}
