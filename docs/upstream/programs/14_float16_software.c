// SPDX-License-Identifier: BSD-3-Clause
// Sums of float16 where the compiler of MPICH had no such type. One rank. A crash, or exit status
// 1: the fault is there.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

static int differs(uint16_t a, uint16_t b, uint16_t expected) {
    uint16_t sum = b;
    MPI_Reduce_local(&a, &sum, 1, MPIX_C_FLOAT16, MPI_SUM);
    if (sum == expected) return 0;
    printf("%#06x + %#06x is %#06x, not %#06x\n", (unsigned)a, (unsigned)b, (unsigned)sum,
           (unsigned)expected);
    return 1;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int fault = differs(0x3c00, 0x3e00, 0x4100);  // 1 + 1.5
    fault |= differs(0, 0, 0);
    MPI_Finalize();
    return fault;
}
