// SPDX-License-Identifier: BSD-3-Clause
// What published codes exchange between neighbours: their arrays, the datatypes that describe the
// parts they send, and the loops that pack the same parts by hand. Must not know how they are
// measured.
//
// layout: one part of the arrays of one code, such as the halo in x of WRF.
// place: index of a particle or grid point in the arrays, from a list that the code has made.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace vecmpi::bench {

// Buffers and types of one side of a message. Of a halo both are the same.
struct TypedEnds {
    const void* out;
    void* in;
    MPI_Datatype out_type, in_type;  // committed, for a count of 1
};

class ApplicationLayout {
  public:
    ApplicationLayout() = default;
    virtual ~ApplicationLayout() = default;
    ApplicationLayout(const ApplicationLayout&) = delete;
    ApplicationLayout& operator=(const ApplicationLayout&) = delete;

    virtual std::size_t bytes() = 0;  // packed
    virtual TypedEnds make_types() const = 0;
    virtual void pack(char* packed) = 0;
    virtual void unpack(const char* packed) = 0;
    virtual void fill(unsigned seed) = 0;          // all arrays
    virtual void clear_received() = 0;             // what `in` lies in
    virtual void pack_received(char* packed) = 0;  // what came in, in the order of `pack`
};

void free_types(TypedEnds& ends);

// Lengths as the code has them; which, the row's function knows.
using ApplicationDims = std::array<int, 4>;

struct ApplicationRow {
    const char* name;
    bool transposes;  // by MPI_Alltoall: the types are those of one rank's block
    std::unique_ptr<ApplicationLayout> (*make)(const ApplicationDims& dims);
    std::array<ApplicationDims, 3> dims;  // small, middle, large
};

const std::vector<ApplicationRow>& application_table();

}  // namespace vecmpi::bench
