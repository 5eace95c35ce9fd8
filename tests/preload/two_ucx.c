// SPDX-License-Identifier: BSD-3-Clause
// A process with two copies of UCX, each loaded with RTLD_LOCAL by a library of its own, as by two
// Python modules: a worker of one must not come to the other. Started by run.sh.
#include <dlfcn.h>
#include <stdio.h>

static int make_progress_in(const char* library) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void (*make_progress)(void) = handle ? (void (*)(void))dlsym(handle, "make_progress") : NULL;
    if (!make_progress) {
        puts(dlerror());
        return 1;
    }
    make_progress();
    return 0;
}

int main(void) {
    return make_progress_in("./libuser_a.so") || make_progress_in("./libuser_b.so") ||
           make_progress_in("./libuser_a.so");
}
