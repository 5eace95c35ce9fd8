// SPDX-License-Identifier: BSD-3-Clause
// Libraries that are loaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vecmpi::base {

struct LoadedLibrary {
    std::string path;
    std::string soname;
};
// In link-map order (RTLD_LOCAL libraries too). Never loads anything.
std::vector<LoadedLibrary> loaded_libraries();
// How many libraries the loader has loaded so far: while this stays, no new one is there.
uint64_t libraries_ever_loaded() noexcept;
// Handle of a library that is already loaded, or null. Never loads anything.
void* handle_of_loaded(const LoadedLibrary& library) noexcept;

// How programs and an MPI library of this soname meet. Pure.
enum class MpiAbi : uint8_t { other, mpich, standard };
MpiAbi abi_of(std::string_view soname) noexcept;

}  // namespace vecmpi::base
