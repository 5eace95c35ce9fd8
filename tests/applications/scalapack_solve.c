// SPDX-License-Identifier: BSD-3-Clause
// A linear system by LU and the eigenvalues of a symmetric matrix, by ScaLAPACK on a grid of all
// ranks.
//
// The right-hand side is that of a known solution; of the eigenvalues the sum and the sum of
// squares are known. An ordinary MPI program that knows nothing of vecmpi.

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);
int numroc_(const int* n, const int* block, const int* process, const int* first,
            const int* processes);
void descinit_(int* desc, const int* m, const int* n, const int* mb, const int* nb,
               const int* first_row, const int* first_column, const int* context,
               const int* leading, int* info);
void pdgesv_(const int* n, const int* nrhs, double* a, const int* ia, const int* ja,
             const int* desc_a, int* pivots, double* b, const int* ib, const int* jb,
             const int* desc_b, int* info);
void pdsyev_(const char* job, const char* uplo, const int* n, double* a, const int* ia,
             const int* ja, const int* desc_a, double* w, double* z, const int* iz, const int* jz,
             const int* desc_z, double* work, const int* lwork, int* info);

static const int block = 64, zero = 0, one = 1;

typedef struct {
    int context, rows, columns, row, column;
} Grid;

typedef struct {
    double* values;
    int desc[9], height, width;
} Matrix;

static Grid make_grid(int ranks) {
    Grid grid;
    int dims[2] = {0, 0};
    MPI_Dims_create(ranks, 2, dims);
    Cblacs_get(-1, 0, &grid.context);
    Cblacs_gridinit(&grid.context, "Row-major", dims[1], dims[0]);
    Cblacs_gridinfo(grid.context, &grid.rows, &grid.columns, &grid.row, &grid.column);
    return grid;
}

static Matrix make_matrix(const Grid* grid, int m, int n) {
    Matrix matrix;
    int info = 0;
    matrix.height = numroc_(&m, &block, &grid->row, &zero, &grid->rows);
    matrix.width = numroc_(&n, &block, &grid->column, &zero, &grid->columns);
    const int leading = matrix.height > 1 ? matrix.height : 1;
    descinit_(matrix.desc, &m, &n, &block, &block, &zero, &zero, &grid->context, &leading, &info);
    matrix.values = calloc((size_t)leading * (matrix.width + 1), sizeof(double));
    return matrix;
}

// Of a block-cyclic distribution: the index in the whole of this process's local one.
static int whole_index(int local, int process, int processes) {
    return (local / block * processes + process) * block + local % block;
}

// Between -0.5 and 0.5, the same for (i, j) and (j, i), and large on the diagonal.
static double element(int i, int j, int n) {
    const unsigned low = i < j ? i : j, high = i < j ? j : i;
    unsigned mixed = low * 2654435761u ^ (high + 1) * 2246822519u;
    mixed ^= mixed >> 15;
    mixed *= 3266489917u;
    mixed ^= mixed >> 13;
    return mixed / 4294967296.0 - 0.5 + (i == j ? sqrt((double)n) : 0);
}

static double known(int i) { return 1 + i % 7; }

static void fill(const Grid* grid, Matrix* matrix, int n) {
    for (int column = 0; column < matrix->width; ++column)
        for (int row = 0; row < matrix->height; ++row)
            matrix->values[(size_t)column * matrix->height + row] =
                element(whole_index(row, grid->row, grid->rows),
                        whole_index(column, grid->column, grid->columns), n);
}

static double seconds_since(double begin) {
    double mine = MPI_Wtime() - begin, longest;
    MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

// The largest error of the solution.
static double solve(const Grid* grid, int n, double* seconds) {
    Matrix a = make_matrix(grid, n, n), b = make_matrix(grid, n, one);
    int* pivots = malloc(sizeof(int) * (a.height + block));
    int info = 0;
    fill(grid, &a, n);
    for (int row = 0; b.width > 0 && row < b.height; ++row) {
        const int i = whole_index(row, grid->row, grid->rows);
        for (int j = 0; j < n; ++j) b.values[row] += element(i, j, n) * known(j);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    pdgesv_(&n, &one, a.values, &one, &one, a.desc, pivots, b.values, &one, &one, b.desc, &info);
    *seconds = seconds_since(begin);
    double error = info == 0 ? 0 : INFINITY;
    for (int row = 0; b.width > 0 && row < b.height; ++row)
        error = fmax(error, fabs(b.values[row] - known(whole_index(row, grid->row, grid->rows))));
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    free(a.values), free(b.values), free(pivots);
    return error;
}

// How far the sum of the eigenvalues is from the trace, and that of their squares from the
// Frobenius norm.
static double eigenvalues(const Grid* grid, int n, double* seconds) {
    Matrix a = make_matrix(grid, n, n), z = make_matrix(grid, n, n);
    double *values = malloc(sizeof(double) * n), asked = 0, *work;
    int info = 0, lwork = -1;
    fill(grid, &a, n);
    pdsyev_("V", "U", &n, a.values, &one, &one, a.desc, values, z.values, &one, &one, z.desc,
            &asked, &lwork, &info);
    lwork = (int)asked + 1;
    work = malloc(sizeof(double) * lwork);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    pdsyev_("V", "U", &n, a.values, &one, &one, a.desc, values, z.values, &one, &one, z.desc, work,
            &lwork, &info);
    *seconds = seconds_since(begin);
    double trace = 0, squares = 0;
    for (int i = 0; i < n; ++i) {
        trace += element(i, i, n) - values[i];
        squares -= values[i] * values[i];
        for (int j = 0; j < n; ++j) squares += element(i, j, n) * element(i, j, n);
    }
    free(a.values), free(z.values), free(values), free(work);
    return info == 0 ? fmax(fabs(trace), fabs(squares)) / n : INFINITY;
}

int main(int argc, char** argv) {
    int ranks, rank;
    double lu, eigen;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const Grid grid = make_grid(ranks);
    const double lu_error = solve(&grid, atoi(argv[1]), &lu);
    const double eigen_error = eigenvalues(&grid, atoi(argv[2]), &eigen);
    if (rank == 0) {
        printf("time of LU %.6f s\ntime of eigenvalues %.6f s\nerrors %g %g\n", lu, eigen, lu_error,
               eigen_error);
        puts(lu_error < 1e-8 && eigen_error < 1e-8 ? "check passed" : "check failed");
        fflush(stdout);
    }
    Cblacs_gridexit(grid.context);
    MPI_Finalize();
    return 0;
}
