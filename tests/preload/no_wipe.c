// SPDX-License-Identifier: BSD-3-Clause
// Preloaded beside libvecmpi.so: rank 1 of the launcher lives on a kernel that cannot wipe memory
// on fork. A filter of system calls, since UCX puts its own madvise in everybody's place.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
             offsetof(struct seccomp_data, args[2])),  // its low half: little-endian
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 18 /* MADV_WIPEONFORK */, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

__attribute__((constructor)) static void forbid(void) {
    const char* rank = getenv("PMI_RANK");
    if (!rank || strcmp(rank, "1") != 0) return;
    const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        perror("no_wipe: this system allows no filter");
}
