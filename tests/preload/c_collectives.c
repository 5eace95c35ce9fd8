// SPDX-License-Identifier: BSD-3-Clause
// Collectives of all kinds: blocking, nonblocking, persistent, neighbourhood, in plain C. Prints
// the results.
#include <stdlib.h>

#include "report.h"

static int rank, size;

static void rooted(void) {
    int root = size - 1, mine[2] = {rank, rank * rank};
    int* all = calloc(2 * size, sizeof(int));
    int *counts = calloc(size, sizeof(int)), *displacements = calloc(size, sizeof(int));
    for (int i = 0; i < size; ++i) counts[i] = 2, displacements[i] = 2 * (size - 1 - i);
    MPI_Bcast(mine, 1, MPI_INT, root, MPI_COMM_WORLD);
    fact("Bcast: %d", mine[0]);
    MPI_Gather(mine, 2, MPI_INT, all, 2, MPI_INT, root, MPI_COMM_WORLD);
    if (rank == root) fact("Gather: %d %d", all[1], all[2 * size - 1]);
    MPI_Gatherv(mine, 2, MPI_INT, all, counts, displacements, MPI_INT, root, MPI_COMM_WORLD);
    if (rank == root) fact("Gatherv: %d %d", all[1], all[2 * size - 1]);
    MPI_Scatter(all, 2, MPI_INT, mine, 2, MPI_INT, root, MPI_COMM_WORLD);
    fact("Scatter: %d %d", mine[0], mine[1]);
    MPI_Scatterv(all, counts, displacements, MPI_INT, mine, 2, MPI_INT, root, MPI_COMM_WORLD);
    fact("Scatterv: %d %d", mine[0], mine[1]);
    MPI_Reduce(rank == root ? MPI_IN_PLACE : mine, mine, 2, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD);
    if (rank == root) fact("Reduce: %d %d", mine[0], mine[1]);
    free(all);
    free(counts);
    free(displacements);
}

static void everyone(void) {
    int *out = calloc(size, sizeof(int)), *in = calloc(size, sizeof(int));
    int *ones = calloc(size, sizeof(int)), *places = calloc(size, sizeof(int));
    for (int i = 0; i < size; ++i) out[i] = 10 * rank + i, ones[i] = 1, places[i] = i;
    double sum, part = rank + 0.25;
    int value = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    fact("Allreduce: %.17g", sum);
    MPI_Allreduce_c(&part, &sum, 1, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD);
    fact("Allreduce_c: %.17g", sum);
    MPI_Allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    fact("Allgather: %d %d", in[0], in[size - 1]);
    MPI_Allgatherv(out, 1, MPI_INT, in, ones, places, MPI_INT, MPI_COMM_WORLD);
    fact("Allgatherv: %d %d", in[0], in[size - 1]);
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    fact("Alltoall: %d %d", in[0], in[size - 1]);
    MPI_Alltoallv(out, ones, places, MPI_INT, in, ones, places, MPI_INT, MPI_COMM_WORLD);
    fact("Alltoallv: %d %d", in[0], in[size - 1]);
    MPI_Reduce_scatter(out, &value, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    fact("Reduce_scatter: %d", value);
    MPI_Reduce_scatter_block(out, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    fact("Reduce_scatter_block: %d", value);
    MPI_Scan(&rank, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    fact("Scan: %d", value);
    value = -1;
    MPI_Exscan(&rank, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    fact("Exscan: %d", value);
    free(out);
    free(in);
    free(ones);
    free(places);
}

static void large(void) {
    enum { elements = 400000 };
    float* data = malloc(elements * sizeof(float));
    for (int i = 0; i < elements; ++i) data[i] = (float)((i % 17) + rank);
    MPI_Allreduce(MPI_IN_PLACE, data, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    fact("large Allreduce: %g %g", data[3], data[elements - 1]);
    MPI_Bcast(data, elements, MPI_FLOAT, 0, MPI_COMM_WORLD);
    fact("large Bcast: %g", data[elements / 2]);
    free(data);
}

// Not commutative: a + b * 10^digits, so that a wrong order shows.
static void concatenate(void* in, void* inout, int* count, MPI_Datatype* type) {
    long *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *count; ++i) b[i] = a[i] * 10 + b[i] % 10;
}

static void user_operation(void) {
    MPI_Op op;
    int commutes;
    long mine = rank + 1, result;
    MPI_Op_create(concatenate, 0, &op);
    MPI_Op_commutative(op, &commutes);
    MPI_Scan(&mine, &result, 1, MPI_LONG, op, MPI_COMM_WORLD);
    fact("user op: commutes %d, Scan %ld", commutes, result);
    MPI_Op_free(&op);
    fact("Op_free: null %d", op == MPI_OP_NULL);
}

static void nonblocking(void) {
    int sum = 0, highest = 0, first = rank, *all = calloc(size, sizeof(int));
    MPI_Request requests[5];
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Ireduce(&rank, &highest, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Ibcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Iallgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &requests[3]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[4]);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    fact("nonblocking: %d %d %d %d", sum, rank == 0 ? highest : 0, first, all[size - 1]);
    free(all);
}

static void persistent(void) {
    int value, sum;
    MPI_Request request;
    MPI_Allreduce_init(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (value = rank; value < rank + 3; ++value) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        fact("Allreduce_init: %d", sum);
    }
    MPI_Request_free(&request);
}

static void neighbourhood(void) {
    MPI_Comm ring;
    int periodic = 1, coordinate, in[2] = {-1, -1}, out[2] = {rank, rank + 100};
    MPI_Request request;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Cart_coords(ring, rank, 1, &coordinate);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, ring);
    fact("Neighbor_allgather: at %d: %d %d", coordinate, in[0], in[1]);
    MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    fact("Ineighbor_alltoall: %d %d", in[0], in[1]);
    MPI_Comm_free(&ring);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = my_rank();
    size = ranks();
    rooted();
    everyone();
    large();
    user_operation();
    nonblocking();
    persistent();
    neighbourhood();
    MPI_Finalize();
    return 0;
}
