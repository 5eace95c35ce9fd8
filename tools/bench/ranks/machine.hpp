// SPDX-License-Identifier: BSD-3-Clause
// What the kernel says of this process: CPUs, memory, threads. Linux only; makes no MPI call.
#pragma once

#include <string>
#include <vector>

namespace vecmpi::bench {

// Binds the calling thread, and the threads that it starts later, to one CPU. Returns false when
// that is refused.
bool pin_this_thread(int cpu);

struct Footprint {
    long rss_kib, peak_kib;  // VmRSS and VmHWM
    int threads;
};
Footprint read_footprint();

struct ThreadPlace {
    std::string name, cpus;  // as the kernel lists them: 0-1,4
};
// All threads of this process, the main thread first.
std::vector<ThreadPlace> read_threads();

// The file that LD_PRELOAD names if it is mapped into this process, else "".
std::string mapped_preload();

}  // namespace vecmpi::bench
