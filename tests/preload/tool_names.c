// SPDX-License-Identifier: BSD-3-Clause
// All that the MPI tool information interface shows, by name and number, before MPI_Init and after
// MPI_Finalize too.
#include <mpi.h>
#include <stdio.h>

static void names(const char* when) {
    char name[256];
    int number = 0, length, none = 0, a, b, c, d, e;
    MPI_Datatype type;
    MPI_T_enum values;
    MPI_T_cvar_get_num(&number);
    for (int i = 0; i < number; ++i) {
        length = sizeof name;
        MPI_T_cvar_get_info(i, name, &length, &a, &type, &values, NULL, &none, &b, &c);
        printf("%s: control variable %d %s\n", when, i, name);
    }
    MPI_T_pvar_get_num(&number);
    for (int i = 0; i < number; ++i) {
        length = sizeof name;
        MPI_T_pvar_get_info(i, name, &length, &a, &b, &type, &values, NULL, &none, &c, &d, &e, &a);
        printf("%s: performance variable %d %s\n", when, i, name);
    }
    MPI_T_category_get_num(&number);
    for (int i = 0; i < number; ++i) {
        length = sizeof name;
        MPI_T_category_get_info(i, name, &length, NULL, &none, &a, &b, &c);
        printf("%s: category %d %s of %d, %d and %d\n", when, i, name, a, b, c);
    }
}

int main(int argc, char** argv) {
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    names("before");
    MPI_Init(&argc, &argv);
    names("in");
    MPI_Finalize();
    names("after");
    MPI_T_finalize();
    printf("at the end: %d\n", MPI_T_cvar_get_num(&provided) == MPI_SUCCESS);
    return 0;
}
