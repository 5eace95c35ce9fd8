// SPDX-License-Identifier: BSD-3-Clause
// vecmpi-info --library: what vecmpi finds out about the inside of an MPI library, by a process of
// one rank that preloads it.
#pragma once

#include <string>
#include <vector>

namespace vecmpi::info {

struct LibraryTrait {
    std::string name;
    std::string state;    // "yes", "no", "off"
    std::string without;  // what is done where it is not "yes"
};

// The same, without printing. Empty: the library cannot be asked, since MPI_Init of one rank alone
// fails or libvecmpi.so is not found.
std::vector<LibraryTrait> ask_library_traits(const std::string& library);

// Starts this program again with libvecmpi.so preloaded. library: a file, or null for the one that
// the loader finds. Returns an exit status where that fails.
int show_library_traits(const char* library);

// In that process: MPI_Init, the table on standard output, MPI_Finalize. Returns the exit status.
int show_traits_here(const char* library);

constexpr const char* traits_here = "--library-here";  // the option of that process

}  // namespace vecmpi::info
