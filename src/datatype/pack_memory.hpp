// SPDX-License-Identifier: BSD-3-Clause
// What plans and packed messages may take of a process' memory together: VECMPI_PACK_MEMORY. Inside
// src/datatype and its tests only.
#pragma once

#include <cstddef>

namespace vecmpi::datatype {

// False: so much is not left.
bool take_pack_memory(size_t bytes) noexcept;
void give_back_pack_memory(size_t bytes) noexcept;

// Of PackMemory.
void free_unused_pieces() noexcept;

}  // namespace vecmpi::datatype
