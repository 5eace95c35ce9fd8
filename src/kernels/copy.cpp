// SPDX-License-Identifier: BSD-3-Clause
// Copying of bytes between buffers that do not overlap.
#include <cstring>

#include "kernels/api.hpp"

namespace vecmpi::kernels {

void copy_bytes(void* to, const void* from, size_t bytes) noexcept {
    if (bytes != 0) std::memcpy(to, from, bytes);  // a null buffer with no bytes is legal in MPI
}

}  // namespace vecmpi::kernels
