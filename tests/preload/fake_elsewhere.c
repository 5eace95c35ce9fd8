// SPDX-License-Identifier: BSD-3-Clause
// Beside the fake MPI library: a function that mpi.h declares and another library than MPI's
// defines.
int MPI_Status_c2f08(const void* from, void* to) {
    *(int*)to = *(const int*)from + 1;
    return 0;
}
