# SPDX-License-Identifier: BSD-3-Clause
# What libvecmpi_abi.so is compiled with: src/library/standard_abi/mpi.h says why. Sets VECMPI_ABI_INCLUDE.
set(vecmpi_forum_header ${PROJECT_SOURCE_DIR}/third_party/mpi_abi/mpi.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${vecmpi_forum_header})
file(READ ${vecmpi_forum_header} header)
# Files and what belongs to tools stay pointers, as in MPICH's mpi.h.
string(REGEX REPLACE "typedef struct (MPI_ABI_[A-Z][a-z]+)\\* (MPI_[A-Z][a-z]+);"
                     "enum \\1 : uintptr_t {}; typedef enum \\1 \\2;" header "${header}")
string(REGEX REPLACE "enum MPI_ABI_File : uintptr_t {}; typedef enum MPI_ABI_File MPI_File;"
                     "typedef struct MPI_ABI_File* MPI_File;" header "${header}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/standard_abi/mpi_handles_as_numbers.h CONTENT "${header}" @ONLY)
set(VECMPI_ABI_INCLUDE ${PROJECT_SOURCE_DIR}/src/library/standard_abi ${PROJECT_BINARY_DIR}/standard_abi)
