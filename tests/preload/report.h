// SPDX-License-Identifier: BSD-3-Clause
// How the test programs print: one line a fact, rank first, so that sorted output can be compared.
// No vecmpi in here.
#pragma once

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>

static int my_rank(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static int ranks(void) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

static void fact(const char* format, ...) {
    char line[512];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    printf("%d: %s\n", my_rank(), line);
}
