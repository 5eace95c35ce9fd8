// SPDX-License-Identifier: BSD-3-Clause
// An MPI library of four functions, built under several sonames: shows where calls arrive and with
// which arguments. MPI_Barrier is missing on purpose.
#include <stdarg.h>
#include <stdio.h>

int PMPI_Init(int* argc, char*** argv) { return argc == argv ? 0 : 1; }
int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }

double PMPI_Wtime(void) { return 1.5; }
double MPI_Wtime(void) { return 2.5; }

// More integers than registers, more doubles than registers.
int PMPI_Pcontrol(int level, ...) {
    va_list values;
    long integers = 0;
    double doubles = 0;
    va_start(values, level);
    for (int i = 0; i < 10; ++i) {
        integers = integers * 3 + va_arg(values, long);
        doubles = doubles * 3 + va_arg(values, double);
    }
    va_end(values);
    printf("PMPI_Pcontrol %d: %ld %.4f\n", level, integers, doubles);
    return level;
}
int MPI_Pcontrol(int level, ...) {
    va_list values;
    va_start(values, level);
    long first = va_arg(values, long);
    double second = va_arg(values, double);
    va_end(values);
    printf("MPI_Pcontrol %d: %ld %.4f\n", level, first, second);
    return level + 1;
}

int PMPI_Get_version(int* version, int* subversion) {
    *version = 9, *subversion = 1;
    return 0;
}
int MPI_Get_version(int* version, int* subversion) {
    *version = 9, *subversion = 2;
    return 0;
}
