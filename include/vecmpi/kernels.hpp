// SPDX-License-Identifier: BSD-3-Clause
// Door of src/kernels: the arithmetic and the copying. No MPI, no threads.
#pragma once

#include <cstddef>

namespace vecmpi {

// Copies `bytes` bytes; the buffers must not overlap. Either may be null when bytes is 0.
void copy_bytes(void* to, const void* from, size_t bytes) noexcept;

}  // namespace vecmpi
