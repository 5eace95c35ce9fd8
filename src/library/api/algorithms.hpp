// SPDX-License-Identifier: BSD-3-Clause
// Door of src/library for folders without MPI: from how many bytes on the library's collectives use
// another algorithm. These are defaults of MPICH 4's control variables (MPIR_CVAR_*_MSG_SIZE),
// which its family shares. Up to there sums of floats have the library's bits, and predictions of
// its speed follow them. With other values the prediction is off, and sums are combined in another
// order that the standard allows (MPI 4.0, 6.9.1).
#pragma once

#include <cstddef>

namespace vecmpi::library {

constexpr size_t library_reduces_by_tree_up_to = 2048;
constexpr size_t library_exchanges_pairs_from = size_t{512} << 10;  // Reduce_scatter; long Bcasts
constexpr size_t library_broadcasts_by_tree_up_to = 12288;
constexpr int library_broadcasts_by_tree_below_ranks = 8;
constexpr size_t library_allgathers_by_doubling_up_to = 81920;
constexpr size_t library_pieces_of_allgatherv = size_t{32} << 10;  // round the ring, at least
// Of one block of an Alltoall.
constexpr size_t library_packs_alltoall_up_to = 256;
constexpr int library_packs_alltoall_from_ranks = 8;
constexpr size_t library_sends_alltoall_at_once_up_to = 32768;

}  // namespace vecmpi::library
