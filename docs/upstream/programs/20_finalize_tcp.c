// SPDX-License-Identifier: BSD-3-Clause
// MPI_Finalize over UCX's TCP waits for a rank that makes no progress any more. Eight ranks, in
// most runs. No end: the fault is there.
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { most = 64 };

int main(int argc, char** argv) {
    setenv("UCX_TLS", "tcp,self", 0);
    setenv("MPIR_CVAR_NOLOCAL", "1", 0);  // on one node as between nodes
    MPI_Init(&argc, &argv);
    int rank, out[most] = {0}, in[most];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);  // each connects to each
    usleep((useconds_t)(rank * 50000));
    MPI_Finalize();
    return 0;
}
