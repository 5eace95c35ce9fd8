// SPDX-License-Identifier: BSD-3-Clause
// The MPI libraries that the loader of this machine finds. Loads them in child processes only.
#pragma once

#include <string>
#include <vector>

#include "base/api.hpp"

namespace vecmpi::info {

struct MpiLibrary {
    std::string soname;
    std::string path;
    std::string version;    // first line of MPI_Get_library_version
    std::string served_by;  // the build of vecmpi for its ABI; empty: calls pass through untouched
    bool is_served() const { return !served_by.empty(); }
};

// The builds of vecmpi, and the sonames under which MPI libraries that they serve are looked for.
struct VecmpiBuild {
    const char* file;
    MpiAbi abi;
    std::vector<std::string> sonames;
};
const std::vector<VecmpiBuild>& vecmpi_builds();
// The file of the build for libraries of this soname; empty: there is none.
std::string build_for(const std::string& soname);

std::vector<MpiLibrary> find_mpi_libraries();

// The library of this file, or that the loader finds by this soname; without a path where it cannot
// be loaded.
MpiLibrary look_at_library(const std::string& file, const std::string& soname);

}  // namespace vecmpi::info
