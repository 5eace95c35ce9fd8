// SPDX-License-Identifier: BSD-3-Clause
// The layouts that `pack` measures, as functions from packed bytes to a datatype. Must not know how
// they are measured.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace vecmpi::bench {

struct Buffer {
    MPI_Datatype type;  // committed
    int count;
};

struct LayoutRow {
    std::string name;
    const char* group;  // vector, indexed, struct, face, transpose, nested
    Buffer (*make)(const LayoutRow& row, std::size_t packed_bytes);
    MPI_Datatype element = MPI_INT;
    int block = 1, stride = 2;
};

const std::vector<LayoutRow>& layout_table();

}  // namespace vecmpi::bench
