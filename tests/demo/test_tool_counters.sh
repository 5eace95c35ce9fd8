#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The example that reads vecmpi's settings and counters by the MPI tool information interface, with and without
# libvecmpi.so.
#
#   test_tool_counters.sh BUILD_FOLDER
set -uo pipefail
build=$(realpath "${1:?usage: test_tool_counters.sh BUILD_FOLDER}")
mpirun=$(command -v mpirun.mpich || command -v mpiexec.hydra)
# shellcheck source=tests/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"

run() { # [NAME=VALUE...] [OPTION...]
    local environment=()
    while [[ ${1:-} == *=* ]]; do
        environment+=(-genv "${1%%=*}" "${1#*=}")
        shift
    done
    timeout 60 "$mpirun" -n 2 "${environment[@]}" "$build/examples/tool_counters" "$@" 2>&1
}

value() { # NAME OUTPUT : of a setting or a counter
    sed -n "s/^$1\( =\|:\) //p" <<<"$2"
}

preload="LD_PRELOAD=$build/libvecmpi.so"
nothing="no variables of vecmpi: it is not preloaded, or off"
expect "plain" "$(run)" "$nothing"
expect "VECMPI=off" "$(run "$preload" VECMPI=off)" "$nothing"
shown=$(run "$preload" VECMPI_WAIT=yield VECMPI_NETWORK= --elements 100 --rounds 7)
expect "a setting that was given" "$(value vecmpi_wait "$shown")" yield
expect "a setting that was not" "$(value vecmpi_network "$shown")" auto
expect "all settings" "$(grep -c ' = ' <<<"$shown")" \
    "$("$build/vecmpi-info" --settings | grep -c '^VECMPI')"
# The counter counts the rounds between start and stop alone: each reduces on each rank, in one turn or in two.
reduced=$(value vecmpi_elements_reduced "$shown")
expect "counted around the operation" "$((${reduced:-0} >= 350 && ${reduced:-0} <= 2800))" 1
twice=$(value vecmpi_elements_reduced "$(run "$preload" --elements 100 --rounds 14)")
expect "twice the rounds" "$((${twice:-0} > ${reduced:-0}))" 1
shown=$(run "$preload" VECMPI_REPORT=summary --elements 100 --rounds 7)
expect "beside a report" "$(value vecmpi_elements_reduced "$shown")" "$reduced"
finish
