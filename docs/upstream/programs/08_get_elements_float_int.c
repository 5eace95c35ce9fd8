// SPDX-License-Identifier: BSD-3-Clause
// MPI_Get_elements divides by zero for MPI_FLOAT_INT. One rank. A crash, or exit status 1: the
// fault is there.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const struct {
        float value;
        int place;
    } out = {1, 2};
    char in[sizeof out];
    int elements = 0;
    MPI_Status status;
    MPI_Sendrecv(&out, 1, MPI_FLOAT_INT, 0, 0, in, 1, MPI_FLOAT_INT, 0, 0, MPI_COMM_SELF, &status);
    MPI_Get_elements(&status, MPI_FLOAT_INT, &elements);
    const int fault = elements != 2;
    if (fault) printf("%d elements, not 2\n", elements);
    MPI_Finalize();
    return fault;
}
