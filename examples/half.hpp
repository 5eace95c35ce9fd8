// SPDX-License-Identifier: BSD-3-Clause
// Gradients as IEEE binary16 numbers on their way between ranks, summed by an MPI op of the
// program's own on two bytes that MPI knows nothing of: what Horovod does with float16 tensors.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace example {

// Rounds to nearest, ties to even; what is too large becomes infinite. `halves` has as many.
void to_halves(std::span<const float> floats, std::uint16_t* halves);
void to_floats(const std::uint16_t* halves, std::span<float> floats);

// The datatype and the commutative op. To be destroyed before MPI_Finalize.
class HalfSum {
  public:
    HalfSum();
    ~HalfSum();
    HalfSum(const HalfSum&) = delete;
    HalfSum& operator=(const HalfSum&) = delete;
    MPI_Datatype type() const { return type_; }
    MPI_Op op() const { return op_; }

  private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    MPI_Op op_ = MPI_OP_NULL;
};

}  // namespace example
