// SPDX-License-Identifier: BSD-3-Clause
// The functions that MPI_Finalize calls first (MPI 4.0, 11.2.4) complete, start and free requests
// of collectives.
#include <mpi.h>
#include <stdio.h>

enum { elements = 4096 };
static float in[elements], out[3][elements];
static MPI_Request persistent, inactive, pending;

static int last(MPI_Comm comm, int key, void* value, void* extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int freed_inactive = MPI_Request_free(&inactive);
    MPI_Start(&persistent);
    const int completed = MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    const int freed = MPI_Request_free(&persistent);
    const int waited = MPI_Wait(&pending, MPI_STATUS_IGNORE);
    printf("%d: %d %d %d %d, sums %g %g of %d\n", rank, freed_inactive, completed, freed, waited,
           out[0][7], out[2][elements - 1], size);
    fflush(stdout);
    return MPI_SUCCESS;
}

int main(int argc, char** argv) {
    int provided, key;
    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    for (int i = 0; i < elements; ++i) in[i] = (float)(i % 11);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Allreduce_init(in, out[0], elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &persistent);
    MPI_Allreduce_init(in, out[1], elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &inactive);
    for (int i = 0; i < 3; ++i) {
        MPI_Start(&persistent);
        MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    }
    MPI_Iallreduce(in, out[2], elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &pending);
    MPI_Finalize();
    return 0;
}
