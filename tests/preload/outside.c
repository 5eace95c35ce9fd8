// SPDX-License-Identifier: BSD-3-Clause
// Calls that MPI 4.0, section 11.4.1, allows before MPI_Init and after MPI_Finalize, from two
// threads at once too.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void look(const char* when) {
    int began, ended, version, subversion, length, number, class;
    char text[MPI_MAX_LIBRARY_VERSION_STRING], value[16];
    int room = sizeof value, found;
    MPI_Info info;
    MPI_Initialized(&began);
    MPI_Finalized(&ended);
    MPI_Get_version(&version, &subversion);
    MPI_Get_library_version(text, &length);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    MPI_Info_get_string(info, "key", &room, value, &found);
    MPI_Info_free(&info);
    MPI_T_cvar_get_num(&number);
    MPI_Error_class(MPI_ERR_TAG, &class);
    printf("%s: began %d ended %d version %d.%d library %d info %s cvars %d class %d\n", when,
           began, ended, version, subversion, length > 10 && strstr(text, "MPICH") != NULL,
           found ? value : "-", number > 100, class == MPI_ERR_TAG);
}

static void* look_early(void* name) {
    int flag = -1;
    MPI_Initialized(&flag);
    printf("%s: %d\n", (char*)name, flag);
    return NULL;
}

int main(int argc, char** argv) {
    pthread_t threads[2];
    int provided;
    pthread_create(&threads[0], NULL, look_early, "first thread");
    pthread_create(&threads[1], NULL, look_early, "second thread");
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    // MPICH 4.0.2 crashes in MPI_Init after MPI_T_finalize: one pair around everything.
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    look("before");
    MPI_Init(&argc, &argv);
    look("between");
    double start = MPI_Wtime();
    int value = 3, sum;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("sum %d time %d tick %d\n", sum, MPI_Wtime() >= start, MPI_Wtick() > 0);
    MPI_Finalize();
    look("after");
    MPI_T_finalize();
    return 0;
}
