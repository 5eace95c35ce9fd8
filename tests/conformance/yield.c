// SPDX-License-Identifier: BSD-3-Clause
// Test-only preload: gives the CPU away after each progress poll of MPICH (ch4:ucx) that found
// nothing, so that four ranks on two CPUs finish. Not part of the product, and not to be used where
// time is measured.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef unsigned (*progress_function)(void* worker);

// Every thread that gets here first finds the same address, so a lost race costs one more look-up.
static _Atomic(progress_function) real_progress;

static progress_function find_real_progress(void) {
    progress_function found = (progress_function)dlsym(RTLD_NEXT, "ucp_worker_progress");
    if (found == NULL) {  // Python loads libmpich, and UCX with it, into a scope of its own
        void* const ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
        if (ucp != NULL) found = (progress_function)dlsym(ucp, "ucp_worker_progress");
    }
    if (found == NULL) abort();  // only libmpich calls us, and it is linked to UCX
    atomic_store_explicit(&real_progress, found, memory_order_release);
    return found;
}

// Interposes UCX's function of this name; libmpich calls it through its procedure linkage table.
unsigned ucp_worker_progress(void* worker) {
    progress_function progress = atomic_load_explicit(&real_progress, memory_order_acquire);
    if (progress == NULL) progress = find_real_progress();
    unsigned const events = progress(worker);
    if (events == 0) sched_yield();
    return events;
}
