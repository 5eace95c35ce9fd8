// SPDX-License-Identifier: BSD-3-Clause
// Stands in for a copy of UCX (compiled with COPY="A") and, with USER, for a library linked to one.
// For run.sh only.
#include <stdio.h>

unsigned ucp_worker_progress(void* worker);

#ifdef USER
void make_progress(void) { ucp_worker_progress(USER); }
#else
unsigned ucp_worker_progress(void* worker) {
    printf("copy %s: worker of %s\n", COPY, (char*)worker);
    return 0;
}
#endif
