// SPDX-License-Identifier: BSD-3-Clause
// Tables of permutations from the blocks of a record. Pure. Inside src/kernels and its tests only.
#pragma once

#include <span>

#include "blocks.hpp"

namespace vecmpi::kernels {

// How many permutations a record takes, and how many records a group has. Both are 0 where
// permutations gain nothing, or a window would have more than most_lines registers.
struct PermutationChoice {
    size_t number = 0, records = 0;
};
PermutationChoice choose_permutations(std::span<const Block> blocks, int64_t stride) noexcept;
// Fills choice.number tables.
void make_permutations(std::span<const Block> blocks, int64_t stride,
                       const PermutationChoice& choice, Permutation* tables) noexcept;

// The same with registers of 16 bytes: `number` parts of a longer record, each a whole register.
// The last part may begin with bytes of the one before.
PermutationChoice choose_shuffles(std::span<const Block> blocks, int64_t stride) noexcept;
void make_shuffles(std::span<const Block> blocks, int64_t stride, const PermutationChoice& choice,
                   Shuffle* tables) noexcept;

// How many groups have their windows within the span of `records` records. A record spans [low,
// high) from where it stands.
size_t groups_within(const Window& window, int64_t stride, int64_t low, int64_t high,
                     size_t records) noexcept;

// Do permutations read, or write under a mask, fewer registers than moves of single blocks?
bool is_faster(Direction direction, size_t lines, size_t moves) noexcept;

}  // namespace vecmpi::kernels
