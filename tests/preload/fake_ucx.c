// SPDX-License-Identifier: BSD-3-Clause
// Stands in for a copy of UCX (compiled with COPY="A") and, with USER, for a library linked to one.
// For run.sh only.
#include <stdio.h>

unsigned ucp_worker_progress(void* worker);
void* ucp_disconnect_nb(void* endpoint);

#ifdef USER
void make_progress(void) {
    ucp_worker_progress(USER);
    ucp_disconnect_nb(USER);
}
#else
unsigned ucp_worker_progress(void* worker) {
    printf("copy %s: worker of %s\n", COPY, (char*)worker);
    return 0;
}
void* ucp_disconnect_nb(void* endpoint) {
    printf("copy %s: endpoint of %s\n", COPY, (char*)endpoint);
    return NULL;
}
#endif
