// SPDX-License-Identifier: BSD-3-Clause
// Array arguments of a persistent call, for its starts.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "offload/api/arguments.hpp"

namespace vecmpi::pipeline {

// Copies, as the library has: mpi4py frees the counts of MPI_Reduce_scatter_init at once. What is
// missing stays so. Throws std::bad_alloc.
class KeptArrays {
  public:
    offload::RankArray copy(offload::RankArray array, int entries) {
        if (array.missing()) return array;
        numbers_.push_back(std::make_unique<int64_t[]>(static_cast<size_t>(entries)));
        int64_t* const kept = numbers_.back().get();
        for (int i = 0; i < entries; ++i) kept[i] = array[i];
        return kept;
    }
    const MPI_Datatype* copy(const MPI_Datatype* types, int entries) {
        if (types == nullptr) return types;
        types_.push_back(std::make_unique<MPI_Datatype[]>(static_cast<size_t>(entries)));
        std::copy(types, types + entries, types_.back().get());
        return types_.back().get();
    }

  private:
    std::vector<std::unique_ptr<int64_t[]>> numbers_;
    std::vector<std::unique_ptr<MPI_Datatype[]>> types_;
};

}  // namespace vecmpi::pipeline
