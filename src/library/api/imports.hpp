// SPDX-License-Identifier: BSD-3-Clause
// Definitions and imports of loaded objects.
#pragma once

#include <cstdint>

namespace vecmpi::library {

// The next definition in the loader's order, or one in a library loaded with RTLD_LOCAL, such as
// MPI_Status_c2f08 in MPICH's Fortran library. Null: there is none. Never loads anything.
void* defined_elsewhere(const char* symbol) noexcept;

// What a caller would have reached without this library, and where its object lies in memory. The
// definition stays loaded.
struct CallersChoice {
    void* address = nullptr;
    uintptr_t begin = 0, end = 0;
    bool is_of(uintptr_t caller) const noexcept { return caller - begin < end - begin; }
};
CallersChoice definition_for(uintptr_t caller, const char* symbol) noexcept;

// Do both addresses lie in the same loaded object?
bool in_one_object(const void* one, const void* other) noexcept;

// From now on the object in memory at `inside`, and no other, calls `replacement` where it calls
// `symbol` through its procedure linkage table. False where it has no such entry, or the kernel
// refuses to make it writable. Source: System V gABI, "Dynamic Linking".
bool replace_import(const void* inside, const char* symbol, const void* replacement) noexcept;

// The same with the entry found once, so that a later write does not ask the loader. It may be made
// while the library holds locks, which a thread that loads something may wait for.
class Import {
  public:
    Import() = default;
    Import(const void* inside, const char* symbol) noexcept;
    explicit operator bool() const noexcept { return entry_ != nullptr; }
    bool replace(const void* replacement) const noexcept;

  private:
    void** entry_ = nullptr;
    bool is_read_only_ = false;
};

// A program that uses a function only if the library has it refers to it weakly, and finds ours.
// This makes such references null where is_missing() says so of what they are bound to, in all
// objects that are loaded now. is_missing() runs under the loader's lock, and must not ask the
// loader.
using IsMissing = bool (*)(const void* bound) noexcept;
void clear_weak_references(IsMissing is_missing) noexcept;

}  // namespace vecmpi::library
