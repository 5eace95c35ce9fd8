// SPDX-License-Identifier: BSD-3-Clause
// Reductions by the kernels (MPI 4.0, 6.9).
#pragma once

#include <mpi.h>

namespace vecmpi::offload {

// MPI_Reduce_local of a predefined op on a predefined type by a kernel. False, and nothing done,
// where that does not give the library's bits for sure or the library may refuse the arguments.
bool reduce_by_kernel(const void* in, void* inout, MPI_Count count, MPI_Datatype type,
                      MPI_Op op) noexcept;
// The library reduced so without an error: the next one may be the kernel's.
void note_reduced_by_library(MPI_Op op, MPI_Datatype type) noexcept;
// True for a predefined op on a predefined type, where we have a kernel and the library accepts the
// pair. Equal on all ranks.
bool is_reducible(MPI_Op op, MPI_Datatype type) noexcept;
// to = left op right, with the bits that MPI_Reduce_local(left, right) would leave in right. `to`
// may be left or right; otherwise it must not overlap them. The library accepts op and type, and
// elements of `extent` bytes. Operators of the program are called.
int reduce_elements(const void* left, const void* right, void* to, MPI_Count count,
                    MPI_Datatype type, MPI_Count extent, MPI_Op op) noexcept;
// A buffer may then be memory that only the GPU reads, and the library knows what to do with it. Of
// this process, now.
bool gpu_runtime_is_loaded() noexcept;
// Before a window is made and freed. While there is one the library accumulates as it does by
// itself.
void note_window_made() noexcept;
void note_window_freed() noexcept;

}  // namespace vecmpi::offload
