/* SPDX-License-Identifier: BSD-3-Clause
 * Sum, sum of squares and largest value of numbers that OpenMP threads share, a block at a time, by
 * vecmpi/team.h and by OpenMP's own reduction. Prints both; exit status 1 where they differ. The
 * numbers are small integers, so that every order of summation gives the same.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "vecmpi/team.h"

enum { blocks = 1000, block_length = 512 };

static double number(long i) { return (double)((i * 7919) % 1009 - 500); }

int main(void) {
    const int threads = omp_get_max_threads();
    double by_team[3] = {0, 0, -1e300}, by_openmp[3] = {0, 0, -1e300};
    vecmpi_team* team = vecmpi_team_create(threads);
    if (team == NULL) {
        perror("team_sum: vecmpi_team_create");
        return 1;
    }

#pragma omp parallel num_threads(threads)
    {
        const int thread = omp_get_thread_num();
        for (long block = 0; block < blocks; block++) {
            double sums[2] = {0, 0}, largest = -1e300;
            for (long i = thread; i < block_length; i += threads) {
                const double x = number(block * block_length + i);
                sums[0] += x;
                sums[1] += x * x;
                if (x > largest) largest = x;
            }
            vecmpi_team_allreduce(team, thread, sums, 2, VECMPI_TEAM_DOUBLE, VECMPI_TEAM_SUM);
            vecmpi_team_allreduce(team, thread, &largest, 1, VECMPI_TEAM_DOUBLE, VECMPI_TEAM_MAX);
            if (thread == 0) { /* every thread has them: one is enough to add them up */
                by_team[0] += sums[0];
                by_team[1] += sums[1];
                if (largest > by_team[2]) by_team[2] = largest;
            }
        }
    }
    vecmpi_team_free(team);

    double sum = 0, squares = 0, largest = -1e300;
#pragma omp parallel for reduction(+ : sum, squares) reduction(max : largest)
    for (long i = 0; i < (long)blocks * block_length; i++) {
        const double x = number(i);
        sum += x;
        squares += x * x;
        if (x > largest) largest = x;
    }
    by_openmp[0] = sum, by_openmp[1] = squares, by_openmp[2] = largest;

    int same = 1;
    for (int k = 0; k < 3; k++) same = same && by_team[k] == by_openmp[k];
    printf("%d threads  sum %.0f  squares %.0f  largest %.0f  %s\n", threads, by_team[0],
           by_team[1], by_team[2], same ? "as OpenMP's" : "OpenMP's differ");
    return same ? 0 : 1;
}
