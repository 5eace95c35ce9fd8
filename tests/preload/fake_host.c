// SPDX-License-Identifier: BSD-3-Clause
// Uses the fake MPI library: each call twice, because the first one goes the long way. With an
// argument: calls the function that the fake library lacks.
#include <stdio.h>

int MPI_Pcontrol(int, ...);
int PMPI_Pcontrol(int, ...);
double MPI_Wtime(void);
double PMPI_Wtime(void);
int MPI_Get_version(int*, int*);
int MPI_Status_c2f08(const void*, void*);
int MPI_Barrier(int) __attribute__((weak));

static void control(int (*function)(int, ...)) {
    int result = function(5, 1L, 0.5, 2L, 1.5, 3L, 2.5, 4L, 3.5, 5L, 4.5, 6L, 5.5, 7L, 6.5, 8L, 7.5,
                          9L, 8.5, 10L, 9.5);
    printf("returned %d\n", result);
}

int main(int argc, char** argv) {
    int version, subversion, four = 4, five = 0;
    (void)argv;
    for (int round = 0; round < 2; ++round) {
        control(MPI_Pcontrol);
        control(PMPI_Pcontrol);
        printf("%.1f %.1f\n", MPI_Wtime(), PMPI_Wtime());
        MPI_Get_version(&version, &subversion);
        MPI_Status_c2f08(&four, &five);
        printf("%d.%d %d\n", version, subversion, five);
    }
    fflush(stdout);
    return argc > 1 ? MPI_Barrier(0x44000000) : 0;
}
