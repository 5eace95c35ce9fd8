// SPDX-License-Identifier: BSD-3-Clause
// Communicators, attributes, errors, types, windows, files, generalized requests, in plain C.
// Prints the results.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

static int copies, deletes;

// Callbacks may call MPI: these do.
static int copy_attribute(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
    int members;
    (void)key, (void)extra;
    MPI_Comm_size(comm, &members);
    copies += members;
    *(void**)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int key, void* value, void* extra) {
    int sum, one = 1;
    (void)key, (void)value, (void)extra;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    deletes += sum;
    return MPI_SUCCESS;
}

static void communicators(void) {
    MPI_Comm copy, half, again;
    MPI_Request request;
    int key, found, *value, mine = 42, members, sum, rank = my_rank();
    MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_attr(copy, key, &mine);
    MPI_Comm_dup(copy, &again);
    MPI_Comm_get_attr(again, key, &value, &found);
    fact("attributes: found %d value %d copies %d", found, found ? *value : 0, copies);
    MPI_Comm_free(&again);
    fact("deletes %d", deletes);
    MPI_Comm_split(copy, rank % 2, -rank, &half);
    MPI_Comm_size(half, &members);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
    fact("Comm_split: %d members, sum %d", members, sum);
    MPI_Comm_free(&half);
    MPI_Comm_idup(copy, &half, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
    MPI_Comm_free(&copy);
    MPI_Comm_free_keyval(&key);
    fact("Comm_free: null %d, deletes %d", copy == MPI_COMM_NULL, deletes);
}

static int handled;
static void user_handler(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    MPI_Error_class(*code, &handled);
}

static void errors(void) {
    int data = 0, class, rc, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Errhandler handler;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rc = MPI_Send(&data, -1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Error_class(rc, &class);
    MPI_Error_string(class, text, &length);
    fact("count -1: %s", text);
    rc = MPI_Isend(&data, 1, MPI_INT, ranks() + 5, 0, MPI_COMM_WORLD, &request);
    MPI_Error_class(rc, &class);
    fact("rank: %d", class == MPI_ERR_RANK);
    rc = MPI_Bcast(&data, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
    MPI_Error_class(rc, &class);
    fact("type: %d", class == MPI_ERR_TYPE);
    MPI_Comm_create_errhandler(user_handler, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Send(&data, 1, MPI_INT, 0, -5, MPI_COMM_WORLD);
    fact("user handler: %d", handled == MPI_ERR_TAG);
    MPI_Errhandler_free(&handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void types(void) {
    int grid[6][6], column[6] = {0}, position = 0, right = (my_rank() + 1) % ranks();
    int left = (my_rank() + ranks() - 1) % ranks();
    char packed[256];
    MPI_Datatype strided;
    for (int i = 0; i < 36; ++i) grid[i / 6][i % 6] = i + 100 * my_rank();
    MPI_Type_vector(6, 1, 6, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    MPI_Sendrecv(&grid[0][2], 1, strided, right, 0, column, 6, MPI_INT, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    fact("vector type: %d %d", column[0], column[5]);
    MPI_Pack(&grid[0][1], 1, strided, packed, sizeof packed, &position, MPI_COMM_WORLD);
    fact("Pack: %d bytes", position);
    // Freed while a message with the type is under way.
    MPI_Request requests[2];
    MPI_Irecv(column, 6, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&grid[0][3], 1, strided, right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&strided);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    fact("freed type: %d %d, null %d", column[0], column[5], strided == MPI_DATATYPE_NULL);
}

static void windows(void) {
    int memory[2] = {0}, value = my_rank() + 7, fetched = -1, right = (my_rank() + 1) % ranks();
    MPI_Win window;
    MPI_Request request;
    // Not MPI_Win_allocate: with less than a page a rank, MPICH 4.0.2 puts into the wrong rank's
    // memory.
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(&value, 1, MPI_INT, right, 0, 1, MPI_INT, window);
    MPI_Accumulate(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    fact("Put: %d, Accumulate: %d", memory[0], memory[1]);
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
    MPI_Rget(&fetched, 1, MPI_INT, right, 0, 1, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock(right, window);
    fact("Rget: %d", fetched);
    MPI_Win_free(&window);
}

static void files(const char* path) {
    int mine[4] = {my_rank(), 1, 2, 3}, back[4] = {0};
    MPI_File file;
    MPI_Status status;
    MPI_Request request;
    MPI_Offset size, offset = (MPI_Offset)sizeof mine * my_rank();
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, offset, mine, 4, MPI_INT, &status);
    MPI_File_iread_at(file, offset, back, 4, MPI_INT, &request);
    MPI_Wait(&request, &status);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(file, &size);
    fact("file: %d %d, %lld bytes", back[0], back[3], (long long)size);
    MPI_File_close(&file);
    if (my_rank() == 0) MPI_File_delete(path, MPI_INFO_NULL);
}

static int query(void* state, MPI_Status* status) {
    (void)state;
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = 11;
    return MPI_SUCCESS;
}
static int release(void* state) {
    ++*(int*)state;
    return MPI_SUCCESS;
}
static int refuse(void* state, int complete) {
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static void generalized(void) {
    int freed = 0, flag, count, in;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Grequest_start(query, release, refuse, &freed, &requests[0]);
    MPI_Irecv(&in, 1, MPI_INT, my_rank(), 50, MPI_COMM_WORLD, &requests[1]);
    MPI_Test(&requests[0], &flag, &statuses[0]);
    fact("Grequest: before %d", flag);
    MPI_Grequest_complete(requests[0]);
    MPI_Send(&count, 1, MPI_INT, my_rank(), 50, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, statuses);
    MPI_Get_count(&statuses[0], MPI_INT, &count);
    fact("Grequest: count %d tag %d freed %d", count, statuses[0].MPI_TAG, freed);
}

int main(int argc, char** argv) {
    int provided, asked;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Query_thread(&asked);
    fact("level: %d %d", provided >= MPI_THREAD_SERIALIZED, asked == provided);
    communicators();
    errors();
    types();
    windows();
    files(argc > 1 ? argv[1] : "objects.data");
    generalized();
    MPI_Finalize();
    return 0;
}
