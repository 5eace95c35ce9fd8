#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the unit tests with sanitizers, in BUILD/unit-WORD. WORD: thread; address (undefined behaviour as well).
#
#   sanitized.sh BUILD WORD [STEMS]    STEMS: a regular expression; these sources of tests/unit are left out
#
# The reductions that Highway compiles for each instruction set are those of BUILD: with sanitizers they take longer than
# all the rest, and vecmpi_kernel_check tries them between pages that may not be touched. Catch2's macros take three times
# as long with the checks of undefined behaviour.
set -euo pipefail
build=$(realpath "${1:?usage: sanitized.sh BUILD WORD}")
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
case ${2:-} in
    thread) sanitizers=thread ;;
    address) sanitizers=address,undefined ;;
    *) echo "sanitized.sh: '${2:-}' is not one of thread, address" >&2; exit 2 ;;
esac
folder=$build/unit-$2
cmake -S "$source" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=None -DVECMPI_TOOLS=OFF -DVECMPI_WERROR=OFF \
    -DCMAKE_CXX_FLAGS="-O1 -g1 -fsanitize=$sanitizers -fno-sanitize-recover=all" \
    -DVECMPI_VECTOR_OBJECTS="$build/src/kernels/CMakeFiles/vecmpi_kernels.dir" \
    -DVECMPI_UNIT_LEAVES_OUT="${3:-}" -DVECMPI_TEST_OPTIONS=-fno-sanitize=undefined
cmake --build "$folder" -j2 --target vecmpi_unit
