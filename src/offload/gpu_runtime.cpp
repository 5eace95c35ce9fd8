// SPDX-License-Identifier: BSD-3-Clause
// Whether this process has, or may come to have, memory of a GPU.
#include "gpu_runtime.hpp"

#include <dlfcn.h>

#include <new>

#include "offload/api.hpp"

namespace vecmpi::offload {

namespace {

// What hwloc loads is no part of the global scope.
LevelZero level_zero_of_program() noexcept {
    return dlsym(RTLD_DEFAULT, "zeInit") == nullptr ? LevelZero::not_linked : LevelZero::linked;
}

}  // namespace

bool has_gpu_runtime(const std::vector<LoadedLibrary>& libraries, LevelZero program) noexcept {
    if (program == LevelZero::linked) return true;
    for (const LoadedLibrary& library : libraries)
        for (const char* name : {"libcuda.so", "libcudart.so", "libamdhip64.so", "libze_intel_"})
            if (library.path.find(name) != std::string::npos) return true;
    return false;
}

// The list of libraries costs tens of us, and is read again only where the loader has loaded one.
bool gpu_runtime_is_loaded() noexcept {
    // The number of loads and the answer, in one word. Relaxed: threads that come here at once find
    // the same.
    static constinit std::atomic<uint64_t> known{0};
    const uint64_t loads = libraries_ever_loaded();
    const uint64_t last = known.load(std::memory_order_relaxed);
    if (last >> 1 == loads && loads != 0) return (last & 1) != 0;
    try {
        const bool is_loaded = has_gpu_runtime(loaded_libraries(), level_zero_of_program());
        known.store(loads << 1 | (is_loaded ? 1 : 0), std::memory_order_relaxed);
        return is_loaded;
    } catch (const std::bad_alloc&) {
        return true;
    }
}

}  // namespace vecmpi::offload
