/* SPDX-License-Identifier: BSD-3-Clause
 * Polls and unlocks as an MPI library does. */
#include <pthread.h>

unsigned ucp_worker_progress(void* worker);
void vecmpi_test_poll(pthread_mutex_t* mutex);

void vecmpi_test_poll(pthread_mutex_t* mutex) {
    pthread_mutex_lock(mutex);
    ucp_worker_progress(mutex);
    pthread_mutex_unlock(mutex);
}
