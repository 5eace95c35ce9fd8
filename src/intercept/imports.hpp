// SPDX-License-Identifier: BSD-3-Clause
// What one loaded object calls by a name, and another function in its place. Not a door:
// src/intercept only.
#pragma once

namespace vecmpi {

// From now on the object in memory at `inside` that calls `symbol` through its procedure linkage
// table calls `replacement`; no other object does. False where it has no such entry, or where the
// kernel refuses to make the entry writable. Source: System V gABI, "Dynamic Linking".
bool replace_import(const void* inside, const char* symbol, const void* replacement) noexcept;

}  // namespace vecmpi
