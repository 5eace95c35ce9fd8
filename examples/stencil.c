/* SPDX-License-Identifier: BSD-3-Clause
 * Heat on a square plate: a star stencil of radius 1 to 3 (5, 9 or 13 points) in double precision.
 * Every rank holds a rectangle of the grid with a halo as wide as the radius. Neighbours to the
 * left and right exchange columns, which lie in memory with a stride: MPI_Type_vector; those above
 * and below exchange rows. Plain MPI: it knows nothing of vecmpi.
 *
 *   stencil [--points N] [--radius R] [--steps S]
 *
 * Prints what a step takes, what of it the exchange takes, and a hash of the grid's bits, which
 * depends on N, R and S alone.
 */
#include "common.h"

typedef struct {
    int width, height; /* of this rank's rectangle */
    int left, top;     /* where it lies in the whole grid */
    int radius, row;   /* row: from one row to the next, in numbers */
    MPI_Comm comm;
    int neighbours[4]; /* left, right, above, below; MPI_PROC_NULL at the edge */
    MPI_Datatype column, rows;
} plate;

/* Numbers of the grid's n that part p of `parts` begins with. */
static int begin_of(int n, int parts, int p) { return (int)((int64_t)n * p / parts); }

/* Cut into columns first, so that few ranks already exchange with a stride. */
static plate make_plate(int points, int radius) {
    plate p = {.radius = radius};
    int ranks, rank, parts[2] = {0, 0}, place[2], never[2] = {0, 0};
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, parts);
    MPI_Cart_create(MPI_COMM_WORLD, 2, parts, never, 0, &p.comm);
    MPI_Comm_rank(p.comm, &rank);
    MPI_Cart_coords(p.comm, rank, 2, place);
    MPI_Cart_shift(p.comm, 0, 1, &p.neighbours[0], &p.neighbours[1]);
    MPI_Cart_shift(p.comm, 1, 1, &p.neighbours[2], &p.neighbours[3]);
    p.left = begin_of(points, parts[0], place[0]);
    p.width = begin_of(points, parts[0], place[0] + 1) - p.left;
    p.top = begin_of(points, parts[1], place[1]);
    p.height = begin_of(points, parts[1], place[1] + 1) - p.top;
    p.row = p.width + 2 * radius;
    return p;
}

static void make_types(plate* p) {
    MPI_Type_vector(p->height, p->radius, p->row, MPI_DOUBLE, &p->column);
    MPI_Type_vector(p->radius, p->width, p->row, MPI_DOUBLE, &p->rows);
    MPI_Type_commit(&p->column);
    MPI_Type_commit(&p->rows);
}

static double* at(const plate* p, double* grid, int x, int y) {
    return grid + (size_t)(y + p->radius) * (size_t)p->row + (size_t)(x + p->radius);
}

static void exchange(const plate* p, double* grid) {
    const int r = p->radius;
    MPI_Request requests[8];
    MPI_Status statuses[8];
    double* const halos[4] = {at(p, grid, -r, 0), at(p, grid, p->width, 0), at(p, grid, 0, -r),
                              at(p, grid, 0, p->height)};
    double* const edges[4] = {at(p, grid, 0, 0), at(p, grid, p->width - r, 0), at(p, grid, 0, 0),
                              at(p, grid, 0, p->height - r)};
    for (int side = 0; side < 4; side++) {
        const MPI_Datatype type = side < 2 ? p->column : p->rows;
        MPI_Irecv(halos[side], 1, type, p->neighbours[side], 0, p->comm, &requests[side]);
        MPI_Isend(edges[side], 1, type, p->neighbours[side], 0, p->comm, &requests[4 + side]);
    }
    MPI_Waitall(8, requests, statuses);
}

static void step(const plate* p, double* restrict now, double* restrict next) {
    const int r = p->radius;
    const double share = 0.125 / r; /* half of what a point holds stays, the rest is shared */
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            const double* const point = at(p, now, x, y);
            double sum = 0;
            for (int d = 1; d <= r; d++) {
                const long up = (long)d * p->row;
                sum += (point[-d] + point[d]) + (point[-up] + point[up]);
            }
            *at(p, next, x, y) = 0.5 * *point + share * sum;
        }
}

static uint64_t hash_of_plate(const plate* p, double* grid, int points) {
    uint64_t hash = 0;
    for (int y = 0; y < p->height; y++)
        hash += hash_of(at(p, grid, 0, y), (size_t)p->width,
                        (uint64_t)(p->top + y) * (uint64_t)points + (uint64_t)p->left);
    return sum_of_all(hash);
}

int main(int argc, char** argv) {
    int points = 2048, radius = 1, steps = 100, ranks, rank;
    MPI_Init(&argc, &argv);
    const number_option options[] = {{"--points", 1, 1 << 20, &points},
                                     {"--radius", 1, 3, &radius},
                                     {"--steps", 1, 1 << 24, &steps},
                                     {NULL, 0, 0, NULL}};
    read_options(argc, argv, "stencil", options);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    plate p = make_plate(points, radius);
    const int thinnest = p.width < p.height ? p.width : p.height;
    if (-largest_of_all(-thinnest) < radius)
        stop_all("stencil", "--points", " leaves a rank less than the halo; take more");
    const size_t numbers = (size_t)p.row * (size_t)(p.height + 2 * radius);
    double* now = calloc(numbers, sizeof *now);
    double* next = calloc(numbers, sizeof *next); /* the plate's edges stay cold */
    double* const wholes = calloc((size_t)steps, sizeof *wholes);
    double* const exchanges = calloc((size_t)steps, sizeof *exchanges);
    if (largest_of_all(now == NULL || next == NULL || wholes == NULL || exchanges == NULL) != 0)
        stop_all("stencil", "--points", " needs more memory than there is; take less");
    make_types(&p);
    for (int y = 0; y < p.height; y++)
        for (int x = 0; x < p.width; x++)
            *at(&p, now, x, y) = ((p.left + x) * 31 + (p.top + y) * 17) % 101;

    MPI_Barrier(p.comm);
    for (int s = 0; s < steps; s++) {
        const double begin = MPI_Wtime();
        exchange(&p, now);
        exchanges[s] = MPI_Wtime() - begin;
        step(&p, now, next);
        wholes[s] = MPI_Wtime() - begin;
        double* const swapped = now;
        now = next, next = swapped;
    }
    const double whole = median_of_slowest(wholes, steps);
    const double exchanging = median_of_slowest(exchanges, steps);
    const uint64_t hash = hash_of_plate(&p, now, points);
    if (rank == 0)
        printf(
            "stencil: %d x %d points, radius %d, %d ranks\n"
            "a step takes %.3f ms, the exchange %.3f ms (slowest rank, medians of %d)\n"
            "hash %016llx\n",
            points, points, radius, ranks, 1e3 * whole, 1e3 * exchanging, steps,
            (unsigned long long)hash);
    MPI_Type_free(&p.column);
    MPI_Type_free(&p.rows);
    MPI_Comm_free(&p.comm);
    free(now);
    free(next);
    free(wholes);
    free(exchanges);
    MPI_Finalize();
    return 0;
}
