# SPDX-License-Identifier: BSD-3-Clause
# Finds libraries of which only headers are used, and says what is missing before anything is compiled. Package managers
# such as Spack show a build's tools to CMake, not to the compiler, so targets name these folders.

function(vecmpi_find_header variable header library package)
  find_path(${variable} ${header} DOC "Folder of ${header}")
  if(NOT ${variable})
    message(FATAL_ERROR "No ${header} found: install ${library} (Debian: ${package}) or choose its folder with "
                        "-D${variable}=/path/to/include")
  endif()
  mark_as_advanced(${variable})
endfunction()

vecmpi_find_header(VECMPI_HIGHWAY_INCLUDE hwy/highway.h Highway libhwy-dev)
vecmpi_find_header(VECMPI_XXHASH_INCLUDE xxhash.h xxHash libxxhash-dev)
