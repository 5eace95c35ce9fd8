// SPDX-License-Identifier: BSD-3-Clause
// Sections of MPI_Pcontrol: seven barriers of each rank are in what a report counts. Two threads
// switch at the same time in between.
#include <locale.h>
#include <pthread.h>

#include "report.h"

static void barriers(int times) {
    for (int i = 0; i < times; ++i) MPI_Barrier(MPI_COMM_WORLD);
}

static void* switch_often(void* unused) {
    for (int i = 0; i < 100; ++i) MPI_Pcontrol(i % 3);
    return unused;
}

int main(int argc, char** argv) {
    int provided;
    pthread_t other;
    setlocale(LC_ALL, "");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    fact("a half is %.1f here", 0.5);
    fact("level 1: %d", MPI_Pcontrol(1));
    barriers(2);
    if (provided == MPI_THREAD_MULTIPLE && pthread_create(&other, NULL, switch_often, NULL) == 0) {
        switch_often(NULL);
        pthread_join(other, NULL);
    }
    fact("level 2: %d", MPI_Pcontrol(2, "from here on", 2.5));
    barriers(3);
    fact("level 0: %d", MPI_Pcontrol(0));
    barriers(5);
    fact("PMPI: %d", PMPI_Pcontrol(1, 7));
    barriers(4);
    fact("another level: %d", MPI_Pcontrol(5, 1.5, 2.5f));
    fact("level 0: %d", MPI_Pcontrol(0));
    barriers(1);
    MPI_Finalize();
    return 0;
}
