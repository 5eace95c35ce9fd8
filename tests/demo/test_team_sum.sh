#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vecmpi/team.h in a real OpenMP program, on fewer, as many and more threads than CPUs, bound and not, and as a stranger
# builds it: from the installed header and library, in C and in C++.
#
#   test_team_sum.sh BUILD_FOLDER CHECKOUT
set -uo pipefail
build=$(realpath "${1:?usage: test_team_sum.sh BUILD_FOLDER CHECKOUT}")
checkout=$(realpath "${2:?usage: test_team_sum.sh BUILD_FOLDER CHECKOUT}")
# shellcheck source=tests/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"

same_numbers_everywhere() {
    local threads
    for threads in 1 2 3 5 8; do
        OMP_NUM_THREADS=$threads timeout 60 "$1" || return 1
        OMP_NUM_THREADS=$threads OMP_PROC_BIND=true timeout 60 "$1" || return 1
        OMP_NUM_THREADS=$threads VECMPI_WAIT=sleep timeout 60 "$1" || return 1
    done | sed 's/^[0-9]* threads//' | sort -u >"$work/lines"
    cat "$work/lines"
    [[ $(wc -l <"$work/lines") == 1 ]] && grep -q "as OpenMP's$" "$work/lines"
}

install_and_build() { # COMPILER SOURCE PROGRAM
    "$1" -Wall -Wextra -Werror -pedantic -fopenmp -I"$work/usr/include" "$2" -o "$3" \
        -L"$(dirname "$(find "$work/usr" -name libvecmpi_team.so)")" -lvecmpi_team \
        -Wl,-rpath,"$(dirname "$(find "$work/usr" -name libvecmpi_team.so)")"
}

check "same numbers on any number of threads" same_numbers_everywhere "$build/examples/team_sum"
check "installs" cmake --install "$build" --prefix "$work/usr"
check "builds in C" install_and_build "${CC:-cc}" "$checkout/examples/team_sum.c" "$work/team_sum"
check "runs as installed" timeout 60 "$work/team_sum"
cp "$checkout/examples/team_sum.c" "$work/team_sum.cpp"
check "builds in C++" install_and_build "${CXX:-c++}" "$work/team_sum.cpp" "$work/team_sum_cxx"
check "runs in C++" timeout 60 "$work/team_sum_cxx"
check "exports nothing else" test -z "$(nm -D --defined-only "$build/libvecmpi_team.so" | grep -v ' vecmpi_team_')"
finish
