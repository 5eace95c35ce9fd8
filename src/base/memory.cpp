// SPDX-License-Identifier: BSD-3-Clause
// Memory that does not survive a fork. Not for small objects: each call takes whole pages and gives
// none back.
#include <sys/mman.h>

#include "base/api.hpp"

namespace vecmpi::base {

void* allocate_wiped_on_fork(size_t bytes) noexcept {
    if (bytes == 0) return nullptr;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    if (madvise(memory, bytes, MADV_WIPEONFORK) != 0) {
        munmap(memory, bytes);
        return nullptr;
    }
    return memory;
}

}  // namespace vecmpi::base
