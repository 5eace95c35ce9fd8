// SPDX-License-Identifier: BSD-3-Clause
// Which libraries make memory of a GPU. Pure.
#pragma once

#include <vector>

#include "base/api.hpp"

namespace vecmpi::offload {

// Level Zero's loader, where it is not the program's, says nothing before it has a driver: hwloc
// loads it in MPI_Init wherever it is installed, as on Debian 13.
enum class LevelZero : uint8_t { not_linked, linked };
bool has_gpu_runtime(const std::vector<LoadedLibrary>& libraries, LevelZero program) noexcept;

}  // namespace vecmpi::offload
