/* SPDX-License-Identifier: BSD-3-Clause
 * Two-dimensional Fourier transform of N x N complex numbers, forth and back. Every rank holds N /
 * P rows; the transform along the columns needs the matrix transposed, which MPI_Alltoall does by
 * its datatypes alone (T. Hoefler and S. Gottlieb: Parallel Zero-Copy Algorithms for Fast Fourier
 * Transform and Conjugate Gradient using MPI Datatypes, EuroMPI 2010, section 3): columns are sent,
 * rows are received, nothing is packed by hand. One-dimensional transforms by FFTW. Plain MPI: it
 * knows nothing of vecmpi.
 *
 *   fft2d [--points N] [--rounds R]
 *
 * Prints what a transform takes, what of it the transpositions take, and a hash of the bits of all
 * spectra, which depends on N, P, R and FFTW's code for this CPU. Exit status 1 where forth and
 * back do not give the numbers again.
 */
#include <complex.h>
#include <fftw3.h>
#include <math.h>

#include "common.h"

typedef struct {
    int points, rows;            /* of the matrix; of this rank */
    MPI_Datatype sent, received; /* the part for one rank, the part from one */
    double transposing;          /* seconds in the last transform */
} layout;

static layout make_layout(int points, int rows) {
    layout l = {.points = points, .rows = rows};
    MPI_Datatype column, columns, block;
    const MPI_Aint number = sizeof(fftw_complex);
    MPI_Type_vector(rows, 1, points, MPI_C_DOUBLE_COMPLEX, &column);
    MPI_Type_create_resized(column, 0, number, &columns); /* the next one begins a number further */
    MPI_Type_contiguous(rows, columns, &block);
    MPI_Type_create_resized(block, 0, rows * number, &l.sent);
    MPI_Type_free(&column);
    MPI_Type_free(&columns);
    MPI_Type_free(&block);
    MPI_Type_vector(rows, rows, points, MPI_C_DOUBLE_COMPLEX, &block);
    MPI_Type_create_resized(block, 0, rows * number, &l.received);
    MPI_Type_free(&block);
    MPI_Type_commit(&l.sent);
    MPI_Type_commit(&l.received);
    return l;
}

static void transpose(layout* l, fftw_complex* from, fftw_complex* to) {
    const double before = MPI_Wtime();
    MPI_Alltoall(from, 1, l->sent, to, 1, l->received, MPI_COMM_WORLD);
    l->transposing += MPI_Wtime() - before;
}

/* In place; `other` is as large. */
static void transform(layout* l, fftw_plan plan, fftw_complex* data, fftw_complex* other) {
    l->transposing = 0;
    fftw_execute_dft(plan, data, data);
    transpose(l, data, other);
    fftw_execute_dft(plan, other, other);
    transpose(l, other, data);
}

static double complex number_at(size_t place) {
    return (double)(place * 7919 % 1009) + I * (double)(place * 104729 % 997);
}

int main(int argc, char** argv) {
    int points = 1024, rounds = 20, ranks, rank;
    MPI_Init(&argc, &argv);
    const number_option options[] = {
        {"--points", 1, 1 << 15, &points}, {"--rounds", 1, 1 << 20, &rounds}, {NULL, 0, 0, NULL}};
    read_options(argc, argv, "fft2d", options);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (points % ranks != 0)
        stop_all("fft2d", "--points", " takes a multiple of the number of ranks");
    layout l = make_layout(points, points / ranks);
    const size_t count = (size_t)l.rows * (size_t)points;
    fftw_complex* const data = fftw_alloc_complex(count);
    fftw_complex* const other = fftw_alloc_complex(count);
    double* const wholes = calloc(2 * (size_t)rounds, sizeof *wholes);
    double* const transposings = calloc(2 * (size_t)rounds, sizeof *transposings);
    if (largest_of_all(data == NULL || other == NULL || wholes == NULL || transposings == NULL) !=
        0)
        stop_all("fft2d", "--points", " needs more memory than there is; take less");
    const int length[] = {points}; /* estimated plans: the same arithmetic in every run */
    const fftw_plan forth = fftw_plan_many_dft(1, length, l.rows, data, NULL, 1, points, data, NULL,
                                               1, points, FFTW_FORWARD, FFTW_ESTIMATE);
    const fftw_plan back = fftw_plan_many_dft(1, length, l.rows, data, NULL, 1, points, data, NULL,
                                              1, points, FFTW_BACKWARD, FFTW_ESTIMATE);
    const size_t first = (size_t)rank * count;
    for (size_t i = 0; i < count; i++) data[i] = number_at(first + i);

    uint64_t hash = 0; /* of all spectra */
    const double scale = 1.0 / ((double)points * points);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int t = 0; t < 2 * rounds; t++) {
        const double begin = MPI_Wtime();
        transform(&l, t % 2 == 0 ? forth : back, data, other);
        wholes[t] = MPI_Wtime() - begin;
        transposings[t] = l.transposing;
        if (t % 2 == 0) hash += hash_of((double*)data, 2 * count, 2 * first);
        if (t % 2 == 1)
            for (size_t i = 0; i < count; i++) data[i] *= scale;
    }
    double error = 0, wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const double distance = cabs(data[i] - number_at(first + i));
        if (!(distance < 1e-7)) wrong = 1; /* no number at all is wrong as well */
        error = fmax(error, distance);
    }
    error = largest_of_all(error);
    wrong = largest_of_all(wrong);
    hash = sum_of_all(hash);
    const double whole = median_of_slowest(wholes, 2 * rounds);
    const double transposing = median_of_slowest(transposings, 2 * rounds);
    if (rank == 0)
        printf(
            "fft2d: %d x %d points, %d ranks\n"
            "a transform takes %.3f ms, transpositions %.3f ms (slowest rank, medians of %d)\n"
            "hash %016llx, largest error %.1e\n",
            points, points, ranks, 1e3 * whole, 1e3 * transposing, 2 * rounds,
            (unsigned long long)hash, error);
    fftw_destroy_plan(forth);
    fftw_destroy_plan(back);
    fftw_free(data);
    fftw_free(other);
    free(wholes);
    free(transposings);
    MPI_Type_free(&l.sent);
    MPI_Type_free(&l.received);
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
