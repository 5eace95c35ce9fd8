/* SPDX-License-Identifier: BSD-3-Clause
 * What vecmpi shows to tools, by the MPI tool information interface (MPI 4.0, chapter 15): its
 * settings as control variables, and its counters around an operation. Plain MPI: it also runs, and
 * says so, where there are none.
 *
 *     mpirun -n 2 -genv LD_PRELOAD $PWD/build/libvecmpi.so build/examples/tool_counters
 */
#include "common.h"

enum { longest_name = 128, most_counters = 256 };

static int is_of_vecmpi(const char* name) { return strncmp(name, "vecmpi_", 7) == 0; }

/* All control variables of vecmpi and their values; how many there are. */
static int print_settings(void) {
    int variables = 0, found = 0;
    MPI_T_cvar_get_num(&variables);
    for (int i = 0; i < variables; i++) {
        char name[longest_name];
        int name_length = sizeof name, no_text = 0, verbosity, bind, scope, count;
        MPI_Datatype type;
        MPI_T_enum values;
        MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &values, NULL, &no_text,
                            &bind, &scope);
        if (!is_of_vecmpi(name)) continue;
        MPI_T_cvar_handle handle;
        MPI_T_cvar_handle_alloc(i, NULL, &handle, &count); /* count: letters, the end among them */
        char* value = malloc((size_t)count);
        MPI_T_cvar_read(handle, value);
        printf("%s = %s\n", name, value);
        free(value);
        MPI_T_cvar_handle_free(&handle);
        found++;
    }
    return found;
}

typedef struct {
    char name[longest_name];
    MPI_T_pvar_handle handle;
} counter;

/* Handles for all counters of vecmpi; how many there are. */
static int find_counters(MPI_T_pvar_session session, counter* counters) {
    int variables = 0, found = 0;
    MPI_T_pvar_get_num(&variables);
    for (int i = 0; i < variables && found < most_counters; i++) {
        int length = longest_name, no_text = 0, verbosity, var_class, bind, readonly, continuous,
            atomic, count;
        MPI_Datatype type;
        MPI_T_enum values;
        counter* next = &counters[found];
        MPI_T_pvar_get_info(i, next->name, &length, &verbosity, &var_class, &type, &values, NULL,
                            &no_text, &bind, &readonly, &continuous, &atomic);
        if (!is_of_vecmpi(next->name)) continue;
        MPI_T_pvar_handle_alloc(session, i, NULL, &next->handle, &count); /* count is 1 */
        found++;
    }
    return found;
}

int main(int argc, char** argv) {
    int elements = 1000, rounds = 10, rank, provided;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    const number_option options[] = {
        {"--elements", 1, 1 << 24, &elements}, {"--rounds", 1, 1 << 20, &rounds}, {NULL}};
    read_options(argc, argv, "tool_counters", options);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    static counter counters[most_counters];
    MPI_T_pvar_session session;
    MPI_T_pvar_session_create(&session);
    const int found = find_counters(session, counters);
    if (rank == 0 && print_settings() == 0)
        printf("no variables of vecmpi: it is not preloaded, or off\n");

    double* numbers = calloc((size_t)elements, sizeof *numbers);
    MPI_T_pvar_start(session,
                     MPI_T_PVAR_ALL_HANDLES); /* from here on they count, for this session */
    for (int i = 0; i < rounds; i++)
        MPI_Allreduce(MPI_IN_PLACE, numbers, elements, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES);

    for (int i = 0; i < found && rank == 0; i++) {
        unsigned long long count = 0;
        MPI_T_pvar_read(session, counters[i].handle, &count);
        if (count != 0) printf("%s: %llu\n", counters[i].name, count);
    }
    free(numbers);
    MPI_T_pvar_session_free(&session); /* and its handles */
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
