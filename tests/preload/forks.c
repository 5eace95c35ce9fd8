// SPDX-License-Identifier: BSD-3-Clause
// Forks while messages are under way, as Python forks its data loaders. One child calls nothing,
// one asks MPI_Initialized, one runs another program; the parent goes on.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(int kind) {
    int flag = 0;
    if (kind == 1) MPI_Initialized(&flag);
    if (kind == 2) execl("/bin/true", "true", (char*)NULL);
    return kind == 1 ? 40 + flag : 7;
}

static int forked(int kind) {
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) _exit(child(kind));
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char** argv) {
    enum { words = 100000 };
    int rank, size, *out = malloc(words * sizeof(int)), *in = calloc(words, sizeof(int)), codes[3];
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < words; ++i) out[i] = rank * words + i;
    MPI_Irecv(in, words, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, words, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
    for (int kind = 0; kind < 3; ++kind) codes[kind] = forked(kind);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("%d: children %d %d %d, got %d\n", rank, codes[0], codes[1], codes[2], in[words - 1]);
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
