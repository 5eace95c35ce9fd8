// SPDX-License-Identifier: BSD-3-Clause
// The MPI libraries that the loader of this machine finds. Loads them in child processes only.
#pragma once

#include <string>
#include <vector>

namespace vecmpi::info {

struct MpiLibrary {
    std::string soname;
    std::string path;
    std::string version;  // first line of MPI_Get_library_version
    bool served =
        false;  // has the MPICH ABI, so vecmpi serves its calls; others pass through untouched
};

std::vector<MpiLibrary> find_mpi_libraries();

// The library of this file, or that the loader finds by this soname; without a path where it cannot
// be loaded.
MpiLibrary look_at_library(const std::string& file, const std::string& soname);

}  // namespace vecmpi::info
