// SPDX-License-Identifier: BSD-3-Clause
// MPI_Pack_external of a struct of two types. One rank. A crash, or exit status 1: the fault is
// there.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const struct {
        int number;
        double weight;
    } record = {1, 1};
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, 8};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    const unsigned char expected[12] = {0, 0, 0, 1, 0x3f, 0xf0};  // big-endian
    unsigned char packed[64] = {0};
    MPI_Datatype type;
    MPI_Aint bytes = 0, position = 0;
    MPI_Type_create_struct(2, lengths, places, types, &type);
    MPI_Type_commit(&type);
    MPI_Pack_external_size("external32", 1, type, &bytes);
    MPI_Pack_external("external32", &record, 1, type, packed, sizeof packed, &position);
    const int fault =
        bytes != 12 || position != 12 || memcmp(packed, expected, sizeof expected) != 0;
    if (fault)
        printf("size %d, position %d, begins with %02x %02x %02x %02x\n", (int)bytes, (int)position,
               packed[0], packed[1], packed[2], packed[3]);
    MPI_Type_free(&type);
    MPI_Finalize();
    return fault;
}
