// SPDX-License-Identifier: BSD-3-Clause
// Faults of MPICH 4.0.2 that later releases do not have, each by its name. Four ranks. A crash, no
// end, or exit status 1: the fault is there.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int unpack_empty(void) {
    char buffer[8] = {0};
    int position = 0;
    MPI_Datatype type;
    MPI_Type_contiguous(0, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Unpack(buffer, sizeof buffer, &position, buffer, 1, type, MPI_COMM_WORLD);
    MPI_Type_free(&type);
    return position != 0;
}

static int reduce_in_place(void) {
    enum { count = 10000 };
    int wrong = 0, *values = malloc(count * sizeof(int));
    const int root = size - 1;
    for (int i = 0; i < count; ++i) values[i] = i;
    if (rank == root)
        MPI_Reduce(MPI_IN_PLACE, values, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    else
        MPI_Reduce(values, NULL, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    for (int i = 0; i < count && rank == root; ++i) wrong += values[i] != i * size;
    free(values);
    return wrong > 0;
}

static int isendrecv_null(void) {
    int out = 0, in = 0;
    MPI_Request request;
    MPI_Isendrecv(&out, 1, MPI_INT, MPI_PROC_NULL, 0, &in, 1, MPI_INT, MPI_PROC_NULL, 0,
                  MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return 0;
}

static int irecv_null(void) {
    int in = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    return status.MPI_SOURCE != MPI_PROC_NULL || status.MPI_TAG != MPI_ANY_TAG;
}

// Rank 0 sends to all others, which have one source and no destination.
static int neighbours(void) {
    enum { most = 64 };
    const int source = 0;
    int destinations[most], counts[most], out[most], in[most];
    MPI_Aint places[most];
    MPI_Datatype types[most];
    MPI_Comm graph;
    for (int i = 0; i < most; ++i) {
        destinations[i] = i + 1;
        counts[i] = 1;
        out[i] = 100 + i;
        in[i] = -1;
        places[i] = (MPI_Aint)(i * sizeof(int));
        types[i] = MPI_INT;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank == 0 ? 0 : 1, &source, MPI_UNWEIGHTED,
                                   rank == 0 ? size - 1 : 0, destinations, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    MPI_Neighbor_alltoallw(out, counts, places, types, in, counts, places, types, graph);
    MPI_Comm_free(&graph);
    return rank != 0 && in[0] != 99 + rank;
}

static int allgatherv_alone(void) {
    const int value = 5, count = 1, place = 2;
    int all[3] = {0};
    MPI_Allgatherv(&value, 1, MPI_INT, all, &count, &place, MPI_INT, MPI_COMM_SELF);
    return all[2] != 5;
}

static int unaligned_window(void) {
    _Alignas(8) int memory[5] = {-1, -1, -1, -1, -1};
    const int value = 7;
    MPI_Win window;
    MPI_Win_create(memory + 1, 4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
    MPI_Win_fence(0, window);
    MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 1, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    return memory[2] != value || memory[1] != -1;
}

static int pack_bottom(void) {
    int value = 5, position = 0;
    const int length = 1;
    char packed[8];
    MPI_Aint place;
    MPI_Datatype type;
    MPI_Get_address(&value, &place);
    MPI_Type_create_hindexed(1, &length, &place, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int code =
        MPI_Pack(MPI_BOTTOM, 1, type, packed, sizeof packed, &position, MPI_COMM_WORLD);
    MPI_Type_free(&type);
    return code != MPI_SUCCESS || position != 4;
}

// The put is complete at once. The target makes no progress for a while.
static int local_flush(void) {
    enum { count = 512 };
    static double memory[count + 1], gotten[count];
    const double value = 1;
    int wrong = 0;
    MPI_Win window;
    for (int i = 0; i < count; ++i) memory[i] = i + 1;
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < 5; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) usleep(20000);
        if (rank != 0) continue;
        memset(gotten, 0, sizeof gotten);
        MPI_Get(gotten, count, MPI_DOUBLE, 1, 0, count, MPI_DOUBLE, window);
        MPI_Put(&value, 1, MPI_DOUBLE, 1, count, 1, MPI_DOUBLE, window);
        MPI_Win_flush_local(1, window);
        wrong += gotten[count - 1] != count;
        MPI_Win_flush(1, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    return wrong > 0;
}

static const struct {
    const char* name;
    int (*has_fault)(void);
} faults[] = {{"unpack-empty", unpack_empty},
              {"reduce-in-place", reduce_in_place},
              {"isendrecv-null", isendrecv_null},
              {"irecv-null", irecv_null},
              {"neighbours", neighbours},
              {"allgatherv-alone", allgatherv_alone},
              {"unaligned-window", unaligned_window},
              {"pack-bottom", pack_bottom},
              {"local-flush", local_flush}};

int main(int argc, char** argv) {
    int here = 2, anyone = 0, provided;
    // A program may use the tools interface before MPI_Init.
    if (argc > 1 && strcmp(argv[1], "tools-before-init") == 0) {
        MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
        MPI_T_finalize();
        here = 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof faults / sizeof *faults && argc > 1; ++i)
        if (strcmp(argv[1], faults[i].name) == 0) here = faults[i].has_fault();
    MPI_Allreduce(&here, &anyone, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && anyone == 1) printf("%s: wrong result\n", argv[1]);
    if (rank == 0 && anyone == 2) printf("no fault of this name\n");
    MPI_Finalize();
    return anyone;
}
