// SPDX-License-Identifier: BSD-3-Clause
// Calls MPI without an MPI library: only possible where something else, such as vecmpi, defines the
// symbol.
extern int MPI_Barrier(int) __attribute__((weak));

int main(void) { return MPI_Barrier != 0 ? MPI_Barrier(0x44000000) : 0; }
