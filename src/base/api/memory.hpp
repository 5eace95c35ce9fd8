// SPDX-License-Identifier: BSD-3-Clause
// Memory that fails without an exception, or that a child sees as zeros.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>

namespace vecmpi::base {

// Memory of malloc, which fails without an exception: null.
struct Freed {
    void operator()(void* memory) const noexcept { std::free(memory); }
};
template <class T>
using Buffer = std::unique_ptr<T[], Freed>;

template <class T>
Buffer<T> allocate(size_t elements) noexcept {
    return Buffer<T>(static_cast<T*>(std::malloc(std::max<size_t>(elements, 1) * sizeof(T))));
}

// Memory that a forked child sees as zeros (MADV_WIPEONFORK), zeroed here too; null on failure.
void* allocate_wiped_on_fork(size_t bytes) noexcept;

}  // namespace vecmpi::base
