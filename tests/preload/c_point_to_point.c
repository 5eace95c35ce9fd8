// SPDX-License-Identifier: BSD-3-Clause
// Point-to-point calls of all kinds around a ring, in plain C. Prints what arrived; asserts nothing
// itself.
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { words = 1000, big_words = 300000 };

static int left, right;

static void fill(int* data, int count, int seed) {
    for (int i = 0; i < count; ++i) data[i] = seed * 1000003 + i;
}

static unsigned sum(const int* data, int count) {
    unsigned total = 0;
    for (int i = 0; i < count; ++i) total = total * 31 + (unsigned)data[i];
    return total;
}

static void print_status(const char* what, const MPI_Status* status) {
    int count, cancelled;
    MPI_Get_count(status, MPI_INT, &count);
    MPI_Test_cancelled(status, &cancelled);
    fact("%s: from %d tag %d count %d cancelled %d", what, status->MPI_SOURCE, status->MPI_TAG,
         count, cancelled);
}

typedef int send_function(const void*, int, MPI_Datatype, int, int, MPI_Comm);

// Even ranks send first: right even where the send waits for its receive.
static void blocking(const char* name, send_function* send, int count) {
    int* out = malloc(count * sizeof(int));
    int* in = calloc(count, sizeof(int));
    MPI_Status status;
    fill(out, count, my_rank() + 1);
    if (my_rank() % 2 == 0) send(out, count, MPI_INT, right, 7, MPI_COMM_WORLD);
    MPI_Recv(in, count, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (my_rank() % 2 != 0) send(out, count, MPI_INT, right, 7, MPI_COMM_WORLD);
    fact("%s %d: %u", name, count, sum(in, count));
    print_status(name, &status);
    free(out);
    free(in);
}

static void buffered(void) {
    int size = words * (int)sizeof(int) + MPI_BSEND_OVERHEAD, detached_size;
    char* buffer = malloc(size);
    void* detached;
    MPI_Buffer_attach(buffer, size);
    blocking("Bsend", MPI_Bsend, words);
    MPI_Buffer_detach(&detached, &detached_size);
    fact("Buffer_detach: same %d size %d", detached == buffer, detached_size == size);
    free(buffer);
}

static void ready(void) {
    int out = my_rank(), in = -1, token = 0;
    MPI_Request request;
    MPI_Irecv(&in, 1, MPI_INT, left, 9, MPI_COMM_WORLD, &request);
    MPI_Sendrecv(&token, 1, MPI_INT, left, 10, &token, 1, MPI_INT, right, 10, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Rsend(&out, 1, MPI_INT, right, 9, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    fact("Rsend: %d, request null %d", in, request == MPI_REQUEST_NULL);
}

static void replace(void) {
    int data[3] = {my_rank(), my_rank() * 2, 5};
    MPI_Status status;
    MPI_Sendrecv_replace(data, 3, MPI_INT, right, 3, left, 3, MPI_COMM_WORLD, &status);
    fact("Sendrecv_replace: %d %d %d", data[0], data[1], data[2]);
    print_status("Sendrecv_replace", &status);
}

// Many at once, of three kinds, completed in every way that the standard has.
static void nonblocking(void) {
    enum { messages = 12 };
    static int out[messages][words], in[messages][words];
    MPI_Request requests[2 * messages];
    MPI_Status statuses[2 * messages];
    for (int i = 0; i < messages; ++i) {
        MPI_Irecv(in[i], words, MPI_INT, left, i, MPI_COMM_WORLD, &requests[i]);
        fill(out[i], words, my_rank() * 100 + i);
    }
    for (int i = 0; i < messages; ++i) {
        MPI_Request* request = &requests[messages + i];
        if (i % 3 == 0) MPI_Isend(out[i], words, MPI_INT, right, i, MPI_COMM_WORLD, request);
        if (i % 3 == 1) MPI_Issend(out[i], words, MPI_INT, right, i, MPI_COMM_WORLD, request);
        if (i % 3 == 2) MPI_Isend_c(out[i], words, MPI_INT, right, i, MPI_COMM_WORLD, request);
    }
    int index, flag = 0, count, indices[messages];
    MPI_Wait(&requests[0], &statuses[0]);
    while (!flag) MPI_Test(&requests[1], &flag, &statuses[1]);
    MPI_Waitany(2, &requests[2], &index, &statuses[2]);
    for (flag = 0; !flag;) MPI_Testany(2, &requests[2], &index, &flag, &statuses[3]);
    for (int left_over = 4; left_over > 0; left_over -= count)
        MPI_Waitsome(4, &requests[4], &count, indices, statuses);
    for (int left_over = 4; left_over > 0; left_over -= count)
        MPI_Testsome(4, &requests[8], &count, indices, statuses);
    for (flag = 0; !flag;)
        MPI_Testall(messages / 2, &requests[messages], &flag, MPI_STATUSES_IGNORE);
    MPI_Waitall(2 * messages, requests, statuses);
    unsigned total = 0;
    for (int i = 0; i < messages; ++i) total = total * 7 + sum(in[i], words);
    fact("nonblocking: %u, all null %d", total,
         requests[0] == MPI_REQUEST_NULL && requests[15] == MPI_REQUEST_NULL);
}

static void probes(void) {
    int out[4] = {1, 2, 3, my_rank()}, in[4];
    MPI_Request requests[3], received;
    MPI_Status status;
    MPI_Message message;
    for (int i = 0; i < 3; ++i)
        MPI_Isend(out, 4, MPI_INT, right, 20 + i, MPI_COMM_WORLD, &requests[i]);
    MPI_Probe(MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, &status);
    print_status("Probe", &status);
    MPI_Recv(in, 4, MPI_INT, status.MPI_SOURCE, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Mprobe(left, 21, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(in, 4, MPI_INT, &message, &status);
    fact("Mrecv: %d, message null %d", in[3], message == MPI_MESSAGE_NULL);
    int found = 0;
    while (!found) MPI_Improbe(left, 22, MPI_COMM_WORLD, &found, &message, &status);
    MPI_Imrecv(in, 4, MPI_INT, &message, &received);
    MPI_Wait(&received, &status);
    print_status("Imrecv", &status);
    fact("Imrecv: message null %d", message == MPI_MESSAGE_NULL);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &found, &status);
    fact("Iprobe: %d", found);
}

static void persistent(void) {
    int out, in;
    MPI_Request requests[2];
    MPI_Send_init(&out, 1, MPI_INT, right, 30, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&in, 1, MPI_INT, left, 30, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < 5; ++round) {
        out = my_rank() * 10 + round;
        if (round % 2 == 0) MPI_Startall(2, requests);
        if (round % 2 != 0) MPI_Start(&requests[1]);
        if (round % 2 != 0) MPI_Start(&requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        fact("persistent %d: %d, kept %d", round, in, requests[0] != MPI_REQUEST_NULL);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    fact("Request_free: null %d", requests[0] == MPI_REQUEST_NULL);
}

static void partitioned(void) {
    int out[8], in[8] = {0}, list[2] = {0, 3}, flag = 0;
    MPI_Request requests[2];
    fill(out, 8, my_rank());
    MPI_Psend_init(out, 4, 2, MPI_INT, right, 40, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in, 4, 2, MPI_INT, left, 40, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Pready_range(1, 2, requests[0]);
    MPI_Pready_list(2, list, requests[0]);
    while (!flag) MPI_Parrived(requests[1], 2, &flag);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    fact("partitioned: %u", sum(in, 8));
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void cancelled(void) {
    int in, flag = -1;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&in, 1, MPI_INT, left, 999, MPI_COMM_WORLD, &request);
    MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    fact("Cancel: %d", flag);
    MPI_Send(&in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    fact("PROC_NULL: source %d tag %d", status.MPI_SOURCE == MPI_PROC_NULL,
         status.MPI_TAG == MPI_ANY_TAG);
    MPI_Wait(&request, &status);
    fact("Wait of a null request: source %d", status.MPI_SOURCE == MPI_ANY_SOURCE);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    left = (my_rank() + ranks() - 1) % ranks();
    right = (my_rank() + 1) % ranks();
    blocking("Send", MPI_Send, words);
    blocking("Send", MPI_Send, 0);
    blocking("Send", MPI_Send, big_words);
    blocking("Ssend", MPI_Ssend, words);
    buffered();
    ready();
    replace();
    nonblocking();
    probes();
    persistent();
    partitioned();
    cancelled();
    MPI_Finalize();
    return 0;
}
