#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the library and the programs that link its parts with link-time optimisation. Fails where one name means two
# types, or where a function or variable is declared in two ways (-Wodr, -Wlto-type-mismatch): the compiler sees one file
# at a time, and without this nothing tells. tests/structure/check_names.py finds such types in a second, by text alone.
#
#   odr.sh [--tests] BUILD_FOLDER    --tests: the unit tests as well, which take as long again
#
# ODR_JOBS: compilers at once (default 2). The last line is "N passed, N failed".
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
    echo "odr.sh: $1 (odr.sh [--tests] BUILD_FOLDER)" >&2
    exit 2
}

targets=(vecmpi vecmpi-info vecmpi-tune-kernels vecmpi-bench-ranks vecmpi-bench-team)
build=''
for word in "$@"; do
    case $word in
        --tests) targets+=(vecmpi_unit) ;;
        -*) usage "'$word' is not an option" ;;
        *) [ -z "$build" ] || usage 'one folder is enough'; build=$word ;;
    esac
done
[ -n "$build" ] || usage 'which folder?'

# Types are compared whatever is optimised, and -O0 is soonest done.
flags='-O0 -Wodr -Werror=odr -Wlto-type-mismatch -Werror=lto-type-mismatch'
cmake -S "$top" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON \
    -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_C_FLAGS="$flags" || exit 1

passed=0 failed=0
for target in "${targets[@]}"; do
    if cmake --build "$build" -j"${ODR_JOBS:-2}" --target "$target"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $target"
    fi
done
echo "$passed passed, $failed failed"
((failed == 0))
