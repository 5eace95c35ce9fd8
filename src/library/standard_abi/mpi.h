// SPDX-License-Identifier: BSD-3-Clause
// The mpi.h of libvecmpi_abi.so: the MPI Forum's (third_party/mpi_abi), in which
// cmake/standard_abi.cmake has made an enum as wide as a pointer of each kind of handle. It is
// passed as the pointer is, and unlike a pointer it may be a constant: the ABI's own constants are
// casts, which C++ takes in no constant expression. Below: what these sources name and the standard
// ABI lacks.
#pragma once

#include <mpi_handles_as_numbers.h>

typedef int MPI_Fint;
typedef int MPIX_Grequest_class;
typedef int MPIX_Grequest_poll_function(void* extra_state, MPI_Status* status);
typedef int MPIX_Grequest_wait_function(int count, void** array_of_states, double timeout,
                                        MPI_Status* status);

// Removed in MPI 3.0: no description of a datatype has them.
enum {
    MPI_COMBINER_HVECTOR_INTEGER = -1,
    MPI_COMBINER_HINDEXED_INTEGER = -2,
    MPI_COMBINER_STRUCT_INTEGER = -3
};
