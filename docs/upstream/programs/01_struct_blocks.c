// SPDX-License-Identifier: BSD-3-Clause
// Struct types that begin before or behind 0: MPICH counts more blocks than it lists, and a message
// copies by what the heap holds in their place. Two ranks. Exit status 1: the fault is there.
#include <dlfcn.h>
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { count = 4000 };

struct record {
    double unused;
    int number;
    float weight;
};

struct block {
    void* address;
    MPI_Aint bytes;
};

typedef int (*count_blocks)(MPI_Datatype, MPI_Count, MPI_Count*, MPI_Count*);
typedef int (*list_blocks)(MPI_Datatype, MPI_Count, struct block*, MPI_Count, MPI_Count*);

// The members number and weight of a record: 8 bytes in one block.
static MPI_Datatype members(void) {
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {8, 12};
    const MPI_Datatype types[] = {MPI_INT, MPI_FLOAT};
    MPI_Datatype pair, type;
    MPI_Type_create_struct(2, lengths, places, types, &pair);
    MPI_Type_create_resized(pair, 0, sizeof(struct record), &type);
    MPI_Type_commit(&type);
    return type;
}

static int blocks_differ(MPI_Datatype type) {
    const count_blocks counted_by = (count_blocks)dlsym(RTLD_DEFAULT, "MPIX_Type_iov_len");
    const list_blocks listed_by = (list_blocks)dlsym(RTLD_DEFAULT, "MPIX_Type_iov");
    if (counted_by == NULL || listed_by == NULL) return 0;
    struct block list[8];
    MPI_Count counted = 0, listed = 0, bytes = 0;
    counted_by(type, 8, &counted, &bytes);
    listed_by(type, 0, list, 8, &listed);
    if (counted != listed) printf("%d blocks counted, %d listed\n", (int)counted, (int)listed);
    return counted != listed;
}

// Rank 0 sends the values one behind the other, rank 1 receives them into records.
static int message_fails(int rank, MPI_Datatype type) {
    int fails = 0;
    char* packed = malloc(8 * count);
    struct record* records = calloc(count, sizeof *records);
    for (int i = 0; i < count; ++i) {
        const float weight = (float)i / 2;
        memcpy(packed + 8 * i, &i, 4);
        memcpy(packed + 8 * i + 4, &weight, 4);
    }
    if (rank == 0) MPI_Send(packed, 8 * count, MPI_PACKED, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) {
        const int code = MPI_Recv(records, count, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int wrong = 0;
        for (int i = 0; i < count; ++i)
            wrong += records[i].number != i || records[i].weight != (float)i / 2;
        fails = code != MPI_SUCCESS || wrong > 0;
        if (fails) printf("MPI_Recv returns %d, %d of %d records are wrong\n", code, wrong, count);
    }
    free(packed);
    free(records);
    return fails;
}

int main(int argc, char** argv) {
    setenv("MPIR_CVAR_CH4_CMA_ENABLE", "1", 0);  // the default of MPICH 5
    mallopt(M_PERTURB, 0x55);                    // the heap holds no zeros
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank, anyone;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Datatype type = members();
    int here = rank == 0 && blocks_differ(type);
    here |= message_fails(rank, type);
    MPI_Allreduce(&here, &anyone, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Type_free(&type);
    MPI_Finalize();
    return anyone;
}
