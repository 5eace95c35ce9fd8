// SPDX-License-Identifier: BSD-3-Clause
// The last rank makes progress in MPI_Finalize when the others have disconnected, and disconnects
// after them. Plain MPICH 4.0 over TCP then never ends.
#include <mpi.h>
#include <stddef.h>

static int make_progress(MPI_Comm comm, int key, void* value, void* extra) {
    (void)key, (void)value, (void)extra;
    const double end = MPI_Wtime() + 0.3;
    for (int found = 0; MPI_Wtime() < end;)
        MPI_Iprobe(MPI_ANY_SOURCE, 7, comm, &found, MPI_STATUS_IGNORE);
    return MPI_SUCCESS;
}

int main(int argc, char** argv) {
    int rank, size, key;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, make_progress, &key, NULL);
    // After those of MPI_COMM_SELF, where vecmpi has all ranks meet.
    if (rank == size - 1) MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
    MPI_Comm_free_keyval(&key);
    return MPI_Finalize();
}
