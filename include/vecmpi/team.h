/* SPDX-License-Identifier: BSD-3-Clause
 * Barrier and reduction for the threads of one process, whatever made them (OpenMP, std::thread,
 * pthread): the extended butterfly of Mohamed El Maarouf et al., Combining reduction with
 * synchronization barrier on multi-core processors, CCPE 35, 2023. Up to 56 bytes travel in the
 * cache lines of the barrier's flags. C and C++; link with -lvecmpi_team. No MPI is needed.
 *
 *     vecmpi_team *team = vecmpi_team_create(omp_get_max_threads());
 *     #pragma omp parallel
 *     {
 *         double sums[3] = ...;
 *         vecmpi_team_allreduce(team, omp_get_thread_num(), sums, 3, VECMPI_TEAM_DOUBLE,
 *                               VECMPI_TEAM_SUM);     // all threads have the sums now
 *     }
 *     vecmpi_team_free(team);
 *
 * Every thread of the team makes the same calls in the same order, each with its own number. A
 * thread that waits looks for a while and then yields its CPU; where there are more threads than
 * CPUs it yields at once.
 */
#ifndef VECMPI_TEAM_H
#define VECMPI_TEAM_H

#define VECMPI_TEAM_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vecmpi_team vecmpi_team;

typedef enum vecmpi_team_type {
    VECMPI_TEAM_INT32,
    VECMPI_TEAM_UINT32,
    VECMPI_TEAM_INT64,
    VECMPI_TEAM_UINT64,
    VECMPI_TEAM_FLOAT,
    VECMPI_TEAM_DOUBLE
} vecmpi_team_type;

typedef enum vecmpi_team_op {
    VECMPI_TEAM_MAX, /* as MPI_MAX: of a NaN and a number, or of both zeros, either may be given */
    VECMPI_TEAM_MIN,
    VECMPI_TEAM_SUM, /* integers wrap */
    VECMPI_TEAM_PROD,
    VECMPI_TEAM_BAND, /* integers only, like the next two */
    VECMPI_TEAM_BOR,
    VECMPI_TEAM_BXOR
} vecmpi_team_op;

/* A team of `threads` threads, 1 to 65536. Null with errno EINVAL or ENOMEM. About 130 bytes times
 * log2(threads) a thread. In the first call of a process's first team two of its threads test for
 * some milliseconds how wide a store the CPU makes visible at once. */
VECMPI_TEAM_API vecmpi_team* vecmpi_team_create(int threads);

/* No thread is inside a call of the team. Null is allowed. */
VECMPI_TEAM_API void vecmpi_team_free(vecmpi_team* team);

/* Returns once all threads of the team have called it. thread: 0 to threads - 1. What a thread
 * wrote before is seen by all after. */
VECMPI_TEAM_API void vecmpi_team_barrier(vecmpi_team* team, int thread);

/* Reduces values[0..count-1] of all threads, element by element; every thread has the same result
 * in its own values, bit for bit. It is a barrier as well. The order of summation is fixed by the
 * number of threads and the count. count, type and op are equal on all threads; count may be 0.
 * Returns 0, or EINVAL, on all threads alike and with nothing done, for a type, an op or a pair
 * that there is not, and for a negative count. */
VECMPI_TEAM_API int vecmpi_team_allreduce(vecmpi_team* team, int thread, void* values, long count,
                                          vecmpi_team_type type, vecmpi_team_op op);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
