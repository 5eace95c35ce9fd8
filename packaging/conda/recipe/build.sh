#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# conda-build runs this in the unpacked archive. conda-forge's Boost has shared libraries only.
set -euo pipefail
# shellcheck disable=SC2086 # CMAKE_ARGS: several words, of the compiler's package
cmake -S . -B build -G Ninja ${CMAKE_ARGS:-} -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" \
    -DCMAKE_INSTALL_LIBDIR=lib -DBoost_USE_STATIC_LIBS=OFF -DVECMPI_MPICC="$PREFIX/bin/mpicc" -DVECMPI_TESTS=OFF
cmake --build build -j"${CPU_COUNT:-2}"
cmake --install build
