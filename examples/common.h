/* SPDX-License-Identifier: BSD-3-Clause
 * What the small example programs share: numbers from the command line, and figures of all ranks.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char* name; /* as in --name NUMBER */
    int least, most;
    int* value;
} number_option;

/* Ends the job with one line on rank 0. Collective: every rank finds the same mistake. */
static void stop_all(const char* program, const char* what, const char* where) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) fprintf(stderr, "%s: %s%s\n", program, what, where);
    MPI_Finalize();
    exit(2); /* NOLINT(concurrency-mt-unsafe): no other thread uses what exit frees */
}

/* `options` ends with a name of NULL. */
static void read_options(int argc, char** argv, const char* program, const number_option* options) {
    for (int i = 1; i < argc; i += 2) {
        const number_option* option = options;
        while (option->name != NULL && strcmp(argv[i], option->name) != 0) option++;
        if (option->name == NULL) {
            char accepted[200] = " is no option; accepted are";
            for (option = options; option->name != NULL; option++) {
                const size_t length = strlen(accepted);
                snprintf(accepted + length, sizeof accepted - length, " %s", option->name);
            }
            stop_all(program, argv[i], accepted);
        }
        char* end = NULL;
        const long number = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
        if (end == NULL || end == argv[i + 1] || *end != '\0' || number < option->least ||
            number > option->most) {
            char range[80];
            snprintf(range, sizeof range, " takes a number from %d to %d", option->least,
                     option->most);
            stop_all(program, option->name, range);
        }
        *option->value = (int)number;
    }
}

/* Of numbers that are spread over all ranks; the same wherever they lie, other bits give another
 * one. `first` is the place of numbers[0] among all of them. To be added up over the ranks. */
static inline uint64_t hash_of(const double* numbers, size_t count, uint64_t first) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        bits ^= (first + i) * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
        bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
        sum += bits ^ (bits >> 31);
    }
    return sum;
}

static inline uint64_t sum_of_all(uint64_t mine) {
    uint64_t sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static inline double largest_of_all(double mine) {
    double largest;
    MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return largest;
}

static inline int compare_doubles(const void* a, const void* b) {
    const double left = *(const double*)a, right = *(const double*)b;
    return (left > right) - (left < right);
}

/* The median of each rank's `count` times, on the slowest rank; sorts them. */
static inline double median_of_slowest(double* times, int count) {
    qsort(times, (size_t)count, sizeof *times, compare_doubles);
    return largest_of_all(times[count / 2]);
}

#endif
