// SPDX-License-Identifier: BSD-3-Clause
// Reductions by the kernels (MPI 4.0, 6.9).
#pragma once

#include <mpi.h>

namespace vecmpi::offload {

// MPI_Reduce_local of a predefined op on a predefined type by a kernel. False, and nothing done,
// where the bits might differ from the library's, or the library might refuse the arguments.
bool reduce_by_kernel(const void* in, void* inout, MPI_Count count, MPI_Datatype type,
                      MPI_Op op) noexcept;
// The library has reduced so without an error. The kernel may serve the next call.
void note_reduced_by_library(MPI_Op op, MPI_Datatype type) noexcept;
// True for a predefined op on a predefined type, where we have a kernel and the library accepts the
// pair. Equal on all ranks.
bool is_reducible(MPI_Op op, MPI_Datatype type) noexcept;
// to = left op right, with the bits that MPI_Reduce_local(left, right) would leave in right. `to`
// may be left or right; otherwise it must not overlap them. The library accepts op and type, and
// elements of `extent` bytes. Operators of the program are called.
int reduce_elements(const void* left, const void* right, void* to, MPI_Count count,
                    MPI_Datatype type, MPI_Count extent, MPI_Op op) noexcept;
// Then a buffer may be memory of the GPU, with which only the library knows what to do. Of this
// process, now.
bool gpu_runtime_is_loaded() noexcept;
// Before a window is made and freed. While there is one, the library accumulates by its own
// functions.
void note_window_made() noexcept;
void note_window_freed() noexcept;

}  // namespace vecmpi::offload
