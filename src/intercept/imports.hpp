// SPDX-License-Identifier: BSD-3-Clause
// What loaded objects call by a name, and another function, or none, in its place. Not a door:
// src/intercept only.
#pragma once

namespace vecmpi {

// From now on the object in memory at `inside` that calls `symbol` through its procedure linkage
// table calls `replacement`; no other object does. False where it has no such entry, or where the
// kernel refuses to make the entry writable. Source: System V gABI, "Dynamic Linking".
bool replace_import(const void* inside, const char* symbol, const void* replacement) noexcept;

// A program that would use a function if the library had it refers to it weakly, and finds ours.
// Makes such references null where is_missing() says so of what they are bound to, in all objects
// that are loaded now. is_missing() runs under the loader's lock: it must not ask the loader.
using IsMissing = bool (*)(const void* bound) noexcept;
void clear_weak_references(IsMissing is_missing) noexcept;

}  // namespace vecmpi
